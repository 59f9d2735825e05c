/* Dense rows times the transpose of a sparse matrix, for one precision and vectors of BYTES bytes. */

/* Vectors of rows that are computed together, outputs that stay in the first-level cache, and partial sums of a sum. */
enum { OF(VECTORS) = 2, OF(OUTPUTS) = 64, OF(PARTS) = 4 };

/* For each vector v the sum of values[k]·inputs[v·d + columns[k]]. An addition must wait for the previous one, so there
 * are PARTS independent sums. */
INLINE void OF(sparse_sum)(
    const OF(Lanes) *inputs, ptrdiff_t d, const REAL *values, const int32_t *columns, int64_t count, OF(Lanes) *sums
) {
    OF(Lanes) part[OF(PARTS)][OF(VECTORS)] = {{{0}}};
    int64_t k = 0;
    for (; k + OF(PARTS) <= count; k += OF(PARTS))
        for (int i = 0; i < OF(PARTS); i++)
            for (int v = 0; v < OF(VECTORS); v++) part[i][v] += inputs[v * d + columns[k + i]] * values[k + i];
    for (; k < count; k++)
        for (int v = 0; v < OF(VECTORS); v++) part[0][v] += inputs[v * d + columns[k]] * values[k];
    for (int v = 0; v < OF(VECTORS); v++) {
        for (int i = 1; i < OF(PARTS); i++) part[0][v] += part[i][v];
        sums[v * OF(OUTPUTS)] = part[0][v];
    }
}

/* Rows X (rows, d) times the transpose of a sparse matrix (D, d): its row i has entries starts[i] to starts[i + 1] − 1
 * of `values`, in `columns`. `buffer` holds VECTORS·LANES·d numbers. Outputs are at out[row·by_row + column·by_column].
 * Return true if one is not finite. */
OF_MACHINES int KAFEAT(dense_by_sparse)(
    const REAL *X, ptrdiff_t rows, ptrdiff_t d, const REAL *values, const int32_t *columns, const int64_t *starts,
    ptrdiff_t D, REAL *buffer, REAL *out, ptrdiff_t by_row, ptrdiff_t by_column
) {
    OF(Lanes) sums[OF(VECTORS) * OF(OUTPUTS)], *inputs = (OF(Lanes) *)buffer;
    int lost = 0;
    for (ptrdiff_t start = 0; start < rows; start += OF(VECTORS) * OF(LANES)) {
        ptrdiff_t here[OF(VECTORS)];
        for (int v = 0; v < OF(VECTORS); v++) {
            ptrdiff_t first = start + v * OF(LANES), left = rows - first;
            here[v] = left < 0 ? 0 : left < OF(LANES) ? left : OF(LANES);
            OF(gather)(X + (left > 0 ? first : start) * d, here[v], d, inputs + v * d);
        }
        for (ptrdiff_t first = 0; first < D; first += OF(OUTPUTS)) {
            ptrdiff_t count = D - first < OF(OUTPUTS) ? D - first : OF(OUTPUTS);
            for (ptrdiff_t j = 0; j < count; j++) {
                int64_t at = starts[first + j], many = starts[first + j + 1] - at;
                OF(sparse_sum)(inputs, d, values + at, columns + at, many, sums + j);
            }
            for (int v = 0; v < OF(VECTORS); v++) {
                REAL *target = out + (start + v * OF(LANES)) * by_row + first * by_column;
                lost |= OF(spread)(sums + v * OF(OUTPUTS), here[v], count, target, by_row, by_column);
            }
        }
    }
    return lost;
}
