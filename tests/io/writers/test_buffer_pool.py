import numpy as np

from kafeat.io.writers.buffer_pool import BufferPool


def arenas(order="F"):
    return BufferPool(6, 3, 2, np.dtype("f4"), order)


def test_memory_comes_back_when_its_last_row_is_free():
    pool = arenas()
    first, second, third = (pool.take(3) for _ in range(3))
    assert np.shares_memory(first.base, second)
    assert not np.shares_memory(first.base, third)
    pieces = [pool.back(block) for block in (first, second)]
    pool.free(pieces[0])
    # The third block's arena has room for one more; the one after it needs another arena.
    assert not any(np.shares_memory(pool.take(3), first.base) for _ in range(3))
    pool.free(pieces[1])
    pool.take(3)
    assert np.shares_memory(pool.take(3), first.base)


def test_memory_of_which_only_some_rows_are_kept_is_used_again():
    arenas = BufferPool(4, 2, 3, np.dtype("f4"), "F")
    good = np.array([False, True])
    first = arenas.take(2)
    place = first.ctypes.data
    first[:] = [[1, 2, 3], [4, 5, 6]]
    second = arenas.take(2)
    pieces = [arenas.back(first, good), arenas.back(second, good)]
    assert pieces[0].block.tolist() == [[4, 5, 6]]
    assert pieces[0].block.flags.f_contiguous
    for piece in pieces:
        arenas.free(piece)
    assert {arenas.take(2).ctypes.data, arenas.take(2).ctypes.data} >= {place}
