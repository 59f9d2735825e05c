/* Boosted trees of at most 32 leaves, for many rows at a time (QuickScorer: Lucchese et al. 2015). Each leaf has a bit,
 * the leftmost leaf the lowest one. Every node whose test sends a row to the right clears the bits of the leaves on its
 * left. Afterwards, the lowest set bit is the row's leaf. The order of nodes does not matter, and nothing branches. */
typedef int32_t OF(Codes) __attribute__((vector_size(BYTES), aligned(4), may_alias));
typedef uint32_t OF(Bits) __attribute__((vector_size(BYTES), aligned(4), may_alias));
typedef float OF(Singles) __attribute__((vector_size(BYTES), aligned(4), may_alias));
enum { OF(ABREAST) = BYTES / 4, OF(VECTORS_OF_ROWS) = 4, OF(EDGES) = 255, OF(LEAVES) = 32 };

/* Write two codes of column j for each of `wide` rows: both are 1 + the number of edges below the value. For NaN, they
 * are 0 and 255, so that it goes to the left or to the right, depending on the code that a node reads. */
INLINE void OF(quantize)(
    const REAL *X, ptrdiff_t d, const int32_t *rows, ptrdiff_t here, int wide, ptrdiff_t j, const float *edges,
    int32_t *codes
) {
    float value[OF(VECTORS_OF_ROWS) * OF(ABREAST)];
    int32_t below[OF(VECTORS_OF_ROWS) * OF(ABREAST)];
    for (int lane = 0; lane < wide; lane++) {
        value[lane] = (float)X[rows[lane < here ? lane : 0] * d + j];
        below[lane] = 0;
    }
    for (int half = (OF(EDGES) + 1) / 2; half; half /= 2)
        for (int lane = 0; lane < wide; lane++) below[lane] += half & -(edges[below[lane] + half - 1] < value[lane]);
    for (int lane = 0; lane < wide; lane++) {
        int there = value[lane] == value[lane];
        codes[lane] = there ? below[lane] + 1 : 0;
        codes[wide + lane] = there ? below[lane] + 1 : 255;
    }
}

/* Sum the leaf values of trees `first` to `stop` − 1 for `count` vectors of rows. A node has three numbers: the vector
 * to read in `codes`, a threshold, and a mask of the leaves that it does not clear. */
INLINE void OF(climb)(
    const int32_t *codes, int count, ptrdiff_t first, ptrdiff_t stop, const int32_t *nodes, ptrdiff_t n_nodes,
    const REAL *leaves, REAL *sums
) {
    memset(sums, 0, (size_t)count * OF(ABREAST) * sizeof(REAL));
    for (ptrdiff_t tree = first; tree < stop; tree++) {
        const int32_t *node = nodes + tree * n_nodes * 3;
        const REAL *values = leaves + tree * OF(LEAVES);
        OF(Codes) bits[OF(VECTORS_OF_ROWS)];
        int32_t leaf[OF(VECTORS_OF_ROWS) * OF(ABREAST)] __attribute__((aligned(BYTES)));
        for (int v = 0; v < count; v++) bits[v] = (OF(Codes)){0} - 1;
        for (ptrdiff_t i = 0; i < n_nodes; i++, node += 3) {
            const OF(Codes) *code = (const OF(Codes) *)(codes + (ptrdiff_t)node[0] * count * OF(ABREAST));
            for (int v = 0; v < count; v++) bits[v] &= node[2] | ~(code[v] > node[1]);
        }
        for (int v = 0; v < count; v++) {
            /* the number of the lowest set bit is its exponent as a float, whose sign is ignored: bit 31 is the sign bit */
            OF(Bits) left = (OF(Bits))bits[v];
            OF(Singles) lowest = __builtin_convertvector((OF(Codes))(left & -left), OF(Singles));
            *(OF(Codes) *)(leaf + v * OF(ABREAST)) = (((OF(Codes))lowest >> 23) & 255) - 127;
        }
        for (int lane = 0; lane < count * OF(ABREAST); lane++) sums[lane] += values[leaf[lane]];
    }
}

/* The outputs of the `here` rows in `count` vectors. Copies of the first row fill the other lanes. */
INLINE void OF(climb_all)(
    const REAL *X, ptrdiff_t d, const int32_t *rows, ptrdiff_t here, int count, const int32_t *columns, ptrdiff_t n_columns,
    const float *edges, const int32_t *nodes, ptrdiff_t n_nodes, const REAL *leaves, const int32_t *ends, const REAL *means,
    ptrdiff_t D, int32_t *codes, REAL *out, ptrdiff_t by_row, ptrdiff_t by_output
) {
    REAL sums[OF(VECTORS_OF_ROWS) * OF(ABREAST)];
    int wide = count * OF(ABREAST);
    for (ptrdiff_t j = 0; j < n_columns; j++)
        OF(quantize)(X, d, rows, here, wide, columns[j], edges + j * OF(EDGES), codes + 2 * j * wide);
    for (ptrdiff_t j = 0; j < D; j++) {
        OF(climb)(codes, count, j ? ends[j - 1] : 0, ends[j], nodes, n_nodes, leaves, sums);
        for (ptrdiff_t lane = 0; lane < here; lane++) out[rows[lane] * by_row + j * by_output] = sums[lane] - means[j];
    }
}

/* The outputs of one ensemble of trees for the rows of X (…, d) whose numbers are in `rows` (n). Output j is the sum
 * over trees ends[j − 1] to ends[j] − 1, minus means[j], and is at out[row·by_row + j·by_output]. `nodes` has three
 * numbers for each node, `leaves` 32 for each tree, and `codes` room for 8·BYTES numbers for each of `columns`. */
OF_MACHINES void KAFEAT(trees)(
    const REAL *X, ptrdiff_t d, const int32_t *rows, ptrdiff_t n, const int32_t *columns, ptrdiff_t n_columns,
    const float *edges, const int32_t *nodes, ptrdiff_t n_nodes, const REAL *leaves, const int32_t *ends, const REAL *means,
    ptrdiff_t D, int32_t *codes, REAL *out, ptrdiff_t by_row, ptrdiff_t by_output
) {
    for (ptrdiff_t at = 0; at < n;) {
        ptrdiff_t left = n - at, most = OF(VECTORS_OF_ROWS) * OF(ABREAST), here = left < most ? left : most;
        if (here > OF(ABREAST))
            OF(climb_all)(X, d, rows + at, here, OF(VECTORS_OF_ROWS), columns, n_columns, edges, nodes, n_nodes, leaves, ends,
                          means, D, codes, out, by_row, by_output);
        else
            OF(climb_all)(X, d, rows + at, here, 1, columns, n_columns, edges, nodes, n_nodes, leaves, ends, means, D, codes,
                          out, by_row, by_output);
        at += here;
    }
}
