/* Products with sparse matrices (CSR), for one precision: row i has entries starts[i] to starts[i + 1] − 1 of `values`,
 * in `columns`. Each output is summed in the order of these entries, so it does not depend on other rows. An output is
 * at out[row·by_row + column·by_column]. Each function returns true if an output is not finite. */

typedef REAL OF(Strip) __attribute__((vector_size(32), aligned(sizeof(REAL)), may_alias));
/* ROWS rows of D outputs are computed in a buffer, with a gap of GAP numbers after each: rows whose addresses differ by
 * a power of two would compete for the same cache lines. */
enum { OF(ROWS) = 16, OF(GAP) = 16 };

INLINE int OF(put)(const REAL *buffer, ptrdiff_t rows, ptrdiff_t D, REAL *out, ptrdiff_t by_row, ptrdiff_t by_column) {
    int lost = 0;
    ptrdiff_t pitch = D + OF(GAP);
    for (ptrdiff_t row = 0; row < rows; row++)
        for (ptrdiff_t j = 0; j < D; j++) lost |= !(OF(size)(buffer[row * pitch + j]) <= OF(LARGEST));
    if (by_column == 1)
        for (ptrdiff_t row = 0; row < rows; row++)
            memcpy(out + row * by_row, buffer + row * pitch, (size_t)D * sizeof(REAL));
    else
        for (ptrdiff_t j = 0; j < D; j++)
            for (ptrdiff_t row = 0; row < rows; row++) out[row * by_row + j * by_column] = buffer[row * pitch + j];
    return lost;
}

/* Sparse rows times a sparse matrix with D columns, whose row i has values `of_inputs` in columns `outputs`, beginning
 * at input_starts[i]. `buffer` holds ROWS·(D + GAP) numbers. */
VERSIONS int KAFEAT(sparse_by_sparse)(
    const REAL *values, const int64_t *columns, const int64_t *starts, ptrdiff_t rows, const REAL *of_inputs,
    const int32_t *outputs, const int64_t *input_starts, ptrdiff_t D, REAL *buffer, REAL *out, ptrdiff_t by_row,
    ptrdiff_t by_column
) {
    int lost = 0;
    for (ptrdiff_t first = 0; first < rows; first += OF(ROWS)) {
        ptrdiff_t here = rows - first < OF(ROWS) ? rows - first : OF(ROWS);
        for (ptrdiff_t i = 0; i < here; i++) {
            REAL *row = buffer + i * (D + OF(GAP));
            memset(row, 0, (size_t)D * sizeof(REAL));
            for (int64_t k = starts[first + i]; k < starts[first + i + 1]; k++)
                for (int64_t e = input_starts[columns[k]]; e < input_starts[columns[k] + 1]; e++)
                    row[outputs[e]] += of_inputs[e] * values[k];
        }
        lost |= OF(put)(buffer, here, D, out + first * by_row, by_row, by_column);
    }
    return lost;
}

/* A sparse row times a matrix (d, D; C order). */
INLINE void OF(combine)(
    const REAL *values, const int64_t *columns, int64_t count, const REAL *matrix, ptrdiff_t D, REAL *row
) {
    enum { WIDE = 8, NUMBERS = 32 / sizeof(REAL) };
    ptrdiff_t first = 0;
    for (; first + WIDE * NUMBERS <= D; first += WIDE * NUMBERS) {
        OF(Strip) sum[WIDE] = {0};
        for (int64_t k = 0; k < count; k++) {
            const OF(Strip) *numbers = (const OF(Strip) *)(matrix + columns[k] * D + first);
            for (int v = 0; v < WIDE; v++) sum[v] += numbers[v] * values[k];
        }
        memcpy(row + first, sum, sizeof sum);
    }
    memset(row + first, 0, (size_t)(D - first) * sizeof(REAL));
    for (int64_t k = 0; k < count; k++)
        for (ptrdiff_t j = first; j < D; j++) row[j] += matrix[columns[k] * D + j] * values[k];
}

/* Sparse rows times a matrix (d, D; C order). `buffer` holds ROWS·(D + GAP) numbers. */
VERSIONS int KAFEAT(sparse_by_dense)(
    const REAL *values, const int64_t *columns, const int64_t *starts, ptrdiff_t rows, const REAL *matrix, ptrdiff_t D,
    REAL *buffer, REAL *out, ptrdiff_t by_row, ptrdiff_t by_column
) {
    int lost = 0;
    for (ptrdiff_t first = 0; first < rows; first += OF(ROWS)) {
        ptrdiff_t here = rows - first < OF(ROWS) ? rows - first : OF(ROWS);
        for (ptrdiff_t i = 0; i < here; i++) {
            int64_t at = starts[first + i], count = starts[first + i + 1] - at;
            OF(combine)(values + at, columns + at, count, matrix, D, buffer + i * (D + OF(GAP)));
        }
        lost |= OF(put)(buffer, here, D, out + first * by_row, by_row, by_column);
    }
    return lost;
}
