"""What MLX's Metal backend holds while it evaluates: buffers live until their command buffer ends.

An operation is encoded into the open command buffer. Its inputs are freed when that buffer has
been executed, not when they are last used. The buffer is committed when it has too many
dispatches or when the elements (not bytes) of the distinct buffers that it touches pass a limit;
encoding waits while more than ten buffers are under way. A prompt keeps the GPU behind, so that
the queue is full.

Source:
    mlx 0.29 to 0.32 ``transforms.cpp`` (``MAX_ACTIVE_TASKS`` = 10), ``backend/metal/eval.cpp``,
    ``backend/metal/device.cpp :: CommandEncoder`` (50 dispatches and 50 Mi elements on Pro, Max
    and Ultra chips, 40 and 40 on the smallest).
"""

from __future__ import annotations

from collections import deque

_LIMIT, _SMALL_LIMIT = 50, 40
"""Dispatches, and Mi elements, beyond which a command buffer is committed."""
_UNDER_WAY = 10


class Buffer:
    """One allocation: its elements, and bytes an element."""

    __slots__ = ("elements", "width")

    def __init__(self, elements: int, width: int = 2) -> None:
        self.elements = elements
        self.width = width

    @property
    def size_bytes(self) -> int:
        """Bytes of the allocation."""
        return self.elements * self.width


class Tape:
    """The memory of one evaluation, operation by operation."""

    def __init__(self, live_bytes: int, width: int = 2, *, is_small: bool = False) -> None:
        self._limit = _SMALL_LIMIT if is_small else _LIMIT
        self.width = width
        """Bytes of an element, where an operation doesn't say."""
        self.live_bytes = live_bytes
        """Allocated now, weights apart."""
        self.peak_bytes = live_bytes
        self.pending_bytes = 0
        """Of the peak, what was done with but waited for its command buffer."""
        self.largest_bytes = 0
        """The largest single buffer that was asked for."""
        self._waiting: deque[int] = deque()
        self._done_with = 0
        self._touched: set[int] = set()
        self._known: list[Buffer] = []
        self._elements = 0
        self._dispatches = 0

    def allocate(self, elements: int, width: int = 0) -> Buffer:
        """A new buffer, not yet touched by an operation."""
        found = Buffer(elements, width or self.width)
        size = found.size_bytes
        self.live_bytes += size
        self.largest_bytes = max(self.largest_bytes, size)
        if self.live_bytes > self.peak_bytes:
            self.peak_bytes = self.live_bytes
            self.pending_bytes = self._done_with + sum(self._waiting)
        return found

    def run(
        self,
        reads: tuple[Buffer, ...],
        elements: int = 0,
        *,
        into: Buffer | None = None,
        last_use: tuple[Buffer, ...] = (),
        weights: int = 0,
        dispatches: int = 1,
    ) -> Buffer:
        """One operation.

        Args:
            reads: its inputs, weights apart.
            elements: of its output, where it needs a new buffer.
            into: the input that it writes over, or a buffer of another width.
            last_use: inputs that nothing reads after it.
            weights: elements of the weights that it reads.
            dispatches: kernels that it starts.
        """
        out = into if into is not None else self.allocate(elements)
        for buffer in (*reads, out):
            self._touch(buffer)
        for buffer in last_use:
            self._done_with += buffer.size_bytes
        self._elements += weights
        self._dispatches += dispatches
        if self._dispatches > self._limit or self._elements >= (self._limit + 1) << 20:
            self._commit()
        return out

    def drop(self, buffers: tuple[Buffer, ...]) -> None:
        """``buffers`` are read by nothing any more."""
        self._done_with += sum(buffer.size_bytes for buffer in buffers)

    def _touch(self, buffer: Buffer) -> None:
        key = id(buffer)
        if key not in self._touched:
            self._touched.add(key)
            # Kept alive: the id of a buffer must not be given to another one.
            self._known.append(buffer)
            self._elements += buffer.elements

    def _commit(self) -> None:
        self._waiting.append(self._done_with)
        self._done_with = self._elements = self._dispatches = 0
        self._touched.clear()
        self._known.clear()
        if len(self._waiting) > _UNDER_WAY:
            self.live_bytes -= self._waiting.popleft()
