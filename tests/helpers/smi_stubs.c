/* Small stand-ins for libamd_smi.so and libze_loader.so, driven by one text file.
 *
 * The file named by SMI_STUB_STATE is read again on every call. One "key value" a line:
 *
 *   init 0            what amdsmi_init and zesInit return
 *   hang 1            amdsmi_init and zesInit don't return while this stands here
 *   gpus 2
 *   gpu0.bdf 768      amdsmi_bdf_t as one number; 768 = 0000:03:00.0
 *   gpu0.name  …
 *   gpu0.vram 8:3     total:used in bytes; "err:10" = that code; for both libraries
 *   gpu0.gtt  4:1
 *   gpu0.physical 9   what Level Zero calls the physical size
 *   gpu0.system 1     its memory is the system's
 *   gpu0.tiles 2      each with half of the memory
 *   gpu0.grown 1      its structures are 32 bytes longer than the ones known here
 *   gpu0.properties 2013265922   what zesMemoryGetProperties returns
 *
 * Structures by AMD's amdsmi.h and Intel's zes_api.h. Build: gcc -shared -fPIC -o NAME smi_stubs.c
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint32_t u32;
typedef uint64_t u64;
static u32 calls;

static int look_up(const char *key, char *out, size_t n) {
    const char *path = getenv("SMI_STUB_STATE");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[512];
    size_t length = strlen(key);
    int found = 0;
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = 0;
        if (!strncmp(line, key, length) && line[length] == ' ') {
            snprintf(out, n, "%s", line + length + 1);
            found = 1;
        }
    }
    fclose(file);
    return found;
}

static u64 number(const char *key, u64 otherwise) {
    char text[64];
    return look_up(key, text, sizeof text) ? strtoull(text, NULL, 10) : otherwise;
}

static u64 of(long gpu, const char *field, u64 otherwise) {
    char key[64];
    snprintf(key, sizeof key, "gpu%ld.%s", gpu, field);
    return number(key, otherwise);
}

/* total (0) or used (1) of "total:used"; the answer is the error code. */
static u32 size_of(long gpu, const char *field, int which, u64 *into) {
    char key[64], text[64];
    snprintf(key, sizeof key, "gpu%ld.%s", gpu, field);
    if (!look_up(key, text, sizeof text)) return 2;
    if (!strncmp(text, "err:", 4)) return (u32)strtoul(text + 4, NULL, 10);
    char *rest;
    u64 total = strtoull(text, &rest, 10), used = *rest ? strtoull(rest + 1, NULL, 10) : 0;
    *into = which ? used : total;
    return 0;
}

static u32 opened(void) {
    calls++;
    while (number("hang", 0)) usleep(2000);
    return (u32)number("init", 0);
}

u32 stub_calls(void) { return calls; }

static u32 listed(u32 there, u32 *count, void **room, long first) {
    if (room)
        for (u32 i = 0; i < *count && i < there; i++) room[i] = (void *)(first + i);
    *count = there;
    return 0;
}

/* ---- amdsmi: one socket a GPU; handles are numbers from 1 ---- */
u32 amdsmi_init(u64 flags) { return flags == 2 ? opened() : 1; }
u32 amdsmi_shut_down(void) { return 0; }
u32 amdsmi_get_socket_handles(u32 *count, void **room) {
    calls++;
    return listed((u32)number("gpus", 0), count, room, 1);
}
u32 amdsmi_get_processor_handles(void *socket, u32 *count, void **room) {
    return listed(1, count, room, (long)socket);
}
u32 amdsmi_get_gpu_device_bdf(void *gpu, u64 *bdf) {
    *bdf = of((long)gpu - 1, "bdf", 0);
    return 0;
}
u32 amdsmi_get_gpu_asic_info(void *gpu, char *into) {
    char key[32];
    snprintf(key, sizeof key, "gpu%ld.name", (long)gpu - 1);
    memset(into, 0x5a, of((long)gpu - 1, "grown", 0) ? 700 : 200);
    return look_up(key, into, 64) ? 0 : 2;
}
u32 amdsmi_get_gpu_memory_total(void *gpu, u32 kind, u64 *into) {
    return kind == 1 ? 2 : size_of((long)gpu - 1, kind ? "gtt" : "vram", 0, into);
}
u32 amdsmi_get_gpu_memory_usage(void *gpu, u32 kind, u64 *into) {
    return kind == 1 ? 2 : size_of((long)gpu - 1, kind ? "gtt" : "vram", 1, into);
}

/* ---- Level Zero ---- */
typedef struct {
    u32 stype; void *next;
    u32 domain, bus, device, function;
    int32_t generation, width; int64_t bandwidth;
    uint8_t counters[3];
} pci_properties;
typedef struct {
    u32 stype; void *next;
    u32 type; uint8_t on_subdevice; u32 subdevice, location; u64 physical;
    int32_t bus_width, channels;
} mem_properties;
typedef struct { u32 stype; const void *next; u32 health; u64 free, size; } mem_state;
typedef struct {
    u32 stype; void *next;
    u32 type, vendor, id, flags, subdevice, clock; u64 largest;
    u32 counts[7]; u64 resolution; u32 bits[2];
    uint8_t uuid[16]; char name[256];
} core_properties;
typedef struct {
    u32 stype; void *next; core_properties core; u32 subdevices; char texts[6][64];
} device_properties;
enum { UNSUPPORTED_ENUMERATION = 0x7800000d };

u32 zesInit(u32 flags) { return flags ? UNSUPPORTED_ENUMERATION : opened(); }
u32 zesDriverGet(u32 *count, void **room) {
    calls++;
    return listed(1, count, room, 1);
}
u32 zesDeviceGet(void *driver, u32 *count, void **room) {
    return listed((u32)number("gpus", 0), count, room, (long)driver);
}
static void grow(long gpu, void *into, size_t size) {
    if (of(gpu, "grown", 0)) memset((char *)into + size, 0x5a, 32);
}
u32 zesDevicePciGetProperties(void *device, pci_properties *into) {
    u64 bdf = of((long)device - 1, "bdf", 0);
    if (into->stype != 2 || into->next) return UNSUPPORTED_ENUMERATION;
    into->domain = (u32)(bdf >> 16);
    into->bus = bdf >> 8 & 255;
    into->device = bdf >> 3 & 31;
    into->function = bdf & 7;
    grow((long)device - 1, into, sizeof *into);
    return 0;
}
u32 zesDeviceGetProperties(void *device, device_properties *into) {
    char key[32];
    if (into->stype != 1 || into->next) return UNSUPPORTED_ENUMERATION;
    snprintf(key, sizeof key, "gpu%ld.name", (long)device - 1);
    memset(into->texts, 'S', sizeof into->texts);
    look_up(key, into->core.name, sizeof into->core.name);
    grow((long)device - 1, into, sizeof *into);
    return 0;
}
u32 zesDeviceEnumMemoryModules(void *device, u32 *count, void **room) {
    return listed((u32)of((long)device - 1, "tiles", 1), count, room, (long)device * 100);
}
u32 zesMemoryGetProperties(void *memory, mem_properties *into) {
    long gpu = (long)memory / 100 - 1;
    if (into->stype != 0xb || into->next) return UNSUPPORTED_ENUMERATION;
    into->location = !of(gpu, "system", 0);
    into->physical = of(gpu, "physical", 0);
    grow(gpu, into, sizeof *into);
    return (u32)of(gpu, "properties", 0);
}
u32 zesMemoryGetState(void *memory, mem_state *into) {
    long gpu = (long)memory / 100 - 1;
    u64 total = 0, used = 0, tiles = of(gpu, "tiles", 1);
    if (into->stype != 0x1e || into->next) return UNSUPPORTED_ENUMERATION;
    u32 status = size_of(gpu, "vram", 0, &total);
    if (status || (status = size_of(gpu, "vram", 1, &used))) return status;
    into->size = total / tiles;
    into->free = (total - used) / tiles;
    grow(gpu, into, sizeof *into);
    return 0;
}
