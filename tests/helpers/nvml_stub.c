/* A small libnvidia-ml.so.1 that answers what a monitor asks, driven by a text file.
 *
 * The file named by NVML_STUB_STATE is read again on every call, so that a test changes the state
 * while the program runs. One "key value" a line, the last one of a key wins:
 *
 *   driver 580.126.09          version of the driver
 *   init 0                     what nvmlInit returns (9 driver not loaded, 18 version mismatch)
 *   generation 1               a change = the driver was reloaded: old handles and the old
 *                              initialisation are gone until nvmlInit is called again
 *   gpus 2
 *   gpu0.name  NVIDIA GeForce RTX 4090
 *   gpu0.uuid  GPU-0
 *   gpu0.total 25757220864     bytes; "ns" = not supported, "err:15" = that NVML error
 *   gpu0.used  1,2,3           without the reserve; a list is a curve: one value a call, then the last
 *   gpu0.reserved 387973120
 *   gpu0.cc 89                 compute capability x 10
 *   gpu0.cores 16384
 *   gpu0.free  5               bytes; else what the others leave of the total
 *   gpu0.pci   00000000:01:00.0
 *   gpu0.ats 2                 addressing mode: 1 HMM, 2 ATS (coherent with the processor)
 *   gpu0.model 0               driver model of Windows: 0 WDDM, 1 TCC
 *   gpu0.virtual 2             2 = a virtual GPU's guest
 *   gpu0.compute 4242:1073741824,4243:ns      processes: pid:bytes; "ns" = not told;
 *                              pid:bytes:instance names the slice of a cut card
 *   gpu0.graphics …            the same for the other two lists
 *   gpu0.mps …
 *   gpu0.mig 1                 MIG is on; gpu0.mig0.total, gpu0.mig1.used … make its slices, which
 *                              have every key of a card and beside them gi (GPU instance) and
 *                              parts (how many of the card's parts it has)
 *   v2 err:13                  memory info of version 2 answers this error
 *   used_with_reserve 1        "used" of version 2 contains the reserve, as the manuals say
 *   hang 1                     memory info does not return while this stands here
 *
 * Build: gcc -shared -fPIC -O1 -o libnvidia-ml.so.1 nvml_stub.c
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef int status;
typedef struct device *handle;
enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7 };
enum { MAX_GPUS = 16, MAX_SLICES = 7, SLICE = 1000 };

typedef struct { u64 total, free_, used; } memory_v1;
typedef struct { u32 version; u64 total, reserved, free_, used; } memory_v2;
typedef struct { u32 pid; u64 used; u32 gpu_instance, compute_instance; } process_v3;
typedef struct { char legacy[16]; u32 domain, bus, device, id, subsystem; char bus_id[32]; } pci_v3;
typedef struct { u32 multiprocessors, shared[5], gpu_parts, compute_parts; u64 memory_mib; } attributes;
typedef struct { u32 version, value; } addressing;

static int initialised, generation_at_init;
static unsigned calls[MAX_GPUS][MAX_SLICES + 1];

static int look_up(const char *key, char *out, size_t n) {
    const char *path = getenv("NVML_STUB_STATE");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[1024];
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

static int number(const char *key, int otherwise) {
    char text[64];
    return look_up(key, text, sizeof text) ? atoi(text) : otherwise;
}

/* A handle is the card's number + 1; a slice's has its own number + 1 in the thousands. */
static int index_of(handle device) { return (int)((intptr_t)device % SLICE) - 1; }
static int slice_of(handle device) { return (int)((intptr_t)device / SLICE) - 1; }

static int field(handle device, const char *leaf, char *out, size_t n) {
    char key[64];
    if (slice_of(device) < 0)
        snprintf(key, sizeof key, "gpu%d.%s", index_of(device), leaf);
    else
        snprintf(key, sizeof key, "gpu%d.mig%d.%s", index_of(device), slice_of(device), leaf);
    return look_up(key, out, n);
}

static status ready(void) {
    return initialised && number("generation", 1) == generation_at_init ? OK : UNINITIALIZED;
}

static status size_of(handle device, const char *leaf, u64 *value) {
    char text[1024], *at = text, *next;
    unsigned skip;
    if (ready()) return UNINITIALIZED;
    if (!field(device, leaf, text, sizeof text) || !strcmp(text, "ns")) return NOT_SUPPORTED;
    if (!strncmp(text, "err:", 4)) return atoi(text + 4);
    for (skip = calls[index_of(device)][slice_of(device) + 1]; skip && (next = strchr(at, ',')); skip--) at = next + 1;
    *value = strtoull(at, NULL, 10);
    return OK;
}

static status text_out(const char *text, char *out, u32 n) {
    if (strlen(text) + 1 > n) return TOO_SMALL;
    strcpy(out, text);
    return OK;
}

status nvmlInitWithFlags(u32 flags) {
    int result = number("init", 0);
    (void)flags;
    if (!result) {
        /* Counted, as the real library does; what an unloaded driver counted is gone. */
        initialised = generation_at_init == number("generation", 1) ? initialised + 1 : 1;
        generation_at_init = number("generation", 1);
        memset(calls, 0, sizeof calls);
    }
    return result;
}
status nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
status nvmlShutdown(void) { if (!initialised) return UNINITIALIZED; initialised--; return OK; }

const char *nvmlErrorString(status code) {
    switch (code) {
        case OK: return "Success";
        case UNINITIALIZED: return "Uninitialized";
        case NOT_SUPPORTED: return "Not Supported";
        case 9: return "Driver Not Loaded";
        case 15: return "GPU is lost";
        case 18: return "Driver/library version mismatch";
        default: return "Simulated error";
    }
}
status nvmlSystemGetDriverVersion(char *out, u32 n) {
    char text[128];
    if (ready()) return UNINITIALIZED;
    return text_out(look_up("driver", text, sizeof text) ? text : "0.0", out, n);
}
status nvmlDeviceGetCount_v2(u32 *count) {
    if (ready()) return UNINITIALIZED;
    *count = (u32)number("gpus", 0);
    return OK;
}
status nvmlDeviceGetHandleByIndex_v2(u32 index, handle *device) {
    char text[64], key[64];
    if (ready()) return UNINITIALIZED;
    if (index >= (u32)number("gpus", 0) || index >= MAX_GPUS) return INVALID;
    snprintf(key, sizeof key, "gpu%u.handle", index);
    if (look_up(key, text, sizeof text) && !strncmp(text, "err:", 4)) return atoi(text + 4);
    *device = (handle)(intptr_t)(index + 1);
    return OK;
}
status nvmlDeviceGetName(handle device, char *out, u32 n) {
    char text[256];
    return field(device, "name", text, sizeof text) ? text_out(text, out, n) : NOT_SUPPORTED;
}
status nvmlDeviceGetUUID(handle device, char *out, u32 n) {
    char text[96];
    if (!field(device, "uuid", text, sizeof text)) {
        if (slice_of(device) < 0) snprintf(text, sizeof text, "GPU-%d", index_of(device));
        else snprintf(text, sizeof text, "MIG-%d-%d", index_of(device), slice_of(device));
    }
    return text_out(text, out, n);
}
status nvmlDeviceGetCudaComputeCapability(handle device, int *major, int *minor) {
    u64 value = 0;
    status code = size_of(device, "cc", &value);
    if (!code) { *major = (int)(value / 10); *minor = (int)(value % 10); }
    return code;
}
status nvmlDeviceGetNumGpuCores(handle device, u32 *cores) {
    u64 value = 0;
    status code = size_of(device, "cores", &value);
    if (!code) *cores = (u32)value;
    return code;
}
static status u32_of(handle device, const char *leaf, u32 *out) {
    u64 value = 0;
    status code = size_of(device, leaf, &value);
    if (!code) *out = (u32)value;
    return code;
}
status nvmlDeviceGetPciInfo_v3(handle device, pci_v3 *out) {
    memset(out, 0, sizeof *out);
    return field(device, "pci", out->bus_id, sizeof out->bus_id) ? OK : NOT_SUPPORTED;
}
status nvmlDeviceGetAddressingMode(handle device, addressing *out) { return u32_of(device, "ats", &out->value); }
status nvmlDeviceGetVirtualizationMode(handle device, u32 *mode) { return u32_of(device, "virtual", mode); }
status nvmlDeviceGetDriverModel_v2(handle device, u32 *now, u32 *next) {
    status code = u32_of(device, "model", now);
    *next = *now;
    return code;
}
status nvmlDeviceGetMigMode(handle device, u32 *now, u32 *next) {
    status code = u32_of(device, "mig", now);
    *next = *now;
    return code;
}
status nvmlDeviceGetMaxMigDeviceCount(handle device, u32 *count) { (void)device; *count = MAX_SLICES; return OK; }
status nvmlDeviceGetMigDeviceHandleByIndex(handle device, u32 index, handle *out) {
    char text[64], leaf[32];
    snprintf(leaf, sizeof leaf, "mig%u.total", index);
    if (index >= MAX_SLICES || !field(device, leaf, text, sizeof text)) return NOT_FOUND;
    *out = (handle)((intptr_t)device + (intptr_t)(index + 1) * SLICE);
    return OK;
}
status nvmlDeviceGetGpuInstanceId(handle device, u32 *id) { return u32_of(device, "gi", id); }
status nvmlDeviceGetAttributes_v2(handle device, attributes *out) {
    u64 total = 0;
    status code;
    memset(out, 0, sizeof *out);
    if ((code = u32_of(device, "parts", &out->gpu_parts)) || (code = size_of(device, "total", &total)))
        return code;
    u32_of(device, "sms", &out->multiprocessors);
    out->memory_mib = total >> 20;
    return OK;
}

static status memory(handle device, u64 *total, u64 *used, u64 *reserved, u64 *left) {
    status code;
    while (number("hang", 0)) usleep(1000);
    if ((code = size_of(device, "total", total)) || (code = size_of(device, "used", used)))
        return code;
    *reserved = 0;
    size_of(device, "reserved", reserved);
    if (size_of(device, "free", left)) *left = *total - *used - *reserved;
    calls[index_of(device)][slice_of(device) + 1]++;
    return OK;
}
/* Version 1 counts the reserve as used. */
status nvmlDeviceGetMemoryInfo(handle device, memory_v1 *out) {
    u64 total = 0, used = 0, reserved = 0, left = 0;
    status code = memory(device, &total, &used, &reserved, &left);
    if (!code) { out->total = total; out->used = used + reserved; out->free_ = left; }
    return code;
}
#ifndef WITHOUT_V2
status nvmlDeviceGetMemoryInfo_v2(handle device, memory_v2 *out) {
    char text[64];
    u64 total = 0, used = 0, reserved = 0, left = 0;
    status code;
    if (look_up("v2", text, sizeof text) && !strncmp(text, "err:", 4)) return atoi(text + 4);
    if ((code = memory(device, &total, &used, &reserved, &left))) return code;
    out->total = total;
    out->reserved = reserved;
    out->free_ = left;
    out->used = used + (number("used_with_reserve", 0) ? reserved : 0);
    return OK;
}
#endif

static status processes(handle device, const char *leaf, u32 *count, process_v3 *out) {
    char text[1024], *item, *rest = NULL, *bytes, *instance;
    process_v3 rows[64];
    u32 n = 0, room = *count;
    if (ready()) return UNINITIALIZED;
    if (field(device, leaf, text, sizeof text)) {
        if (!strcmp(text, "ns")) return NOT_SUPPORTED;
        if (!strncmp(text, "err:", 4)) return atoi(text + 4);
        for (item = strtok_r(text, ",", &rest); item && n < 64; item = strtok_r(NULL, ",", &rest)) {
            bytes = strchr(item, ':');
            rows[n].pid = (u32)atoi(item);
            instance = bytes ? strchr(bytes + 1, ':') : NULL;
            rows[n].used = !bytes || !strncmp(bytes + 1, "ns", 2) ? ~0ULL : strtoull(bytes + 1, NULL, 10);
            rows[n].gpu_instance = instance ? (u32)atoi(instance + 1) : 0xFFFFFFFFu;
            rows[n].compute_instance = 0xFFFFFFFFu;
            n++;
        }
    }
    *count = n;
    if (n > room) return TOO_SMALL;
    if (out) memcpy(out, rows, n * sizeof *rows);
    return OK;
}
status nvmlDeviceGetComputeRunningProcesses_v3(handle d, u32 *n, process_v3 *out) { return processes(d, "compute", n, out); }
status nvmlDeviceGetGraphicsRunningProcesses_v3(handle d, u32 *n, process_v3 *out) { return processes(d, "graphics", n, out); }
status nvmlDeviceGetMPSComputeRunningProcesses_v3(handle d, u32 *n, process_v3 *out) { return processes(d, "mps", n, out); }
