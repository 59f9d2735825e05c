/* Cosines and sines of products of rows with frequencies, for one precision and vectors of BYTES bytes. A block of
 * angles becomes features at once, so the matrix of all angles is never in memory. */

/* The products of HIGH rows of one side with WIDE vectors of the other need 24 of the 32 registers, one for each sum. */
enum { OF(HIGH) = 12, OF(WIDE) = 2, OF(COLUMNS) = OF(WIDE) * BYTES / sizeof(REAL) };
/* The most bytes of panels that stay in the second-level cache, and the number of products in a partial sum: adding
 * partial sums loses fewer digits than one long sum. */
enum { OF(CACHED) = 1 << 19, OF(PRODUCTS) = 128 };

/* Pack rows M (count, d) into consecutive panels (d, COLUMNS) of COLUMNS rows side by side. Zeros fill the last. */
OF_MACHINES void KAFEAT(panels)(const REAL *M, ptrdiff_t count, ptrdiff_t d, REAL *panels) {
    for (ptrdiff_t first = 0; first < count; first += OF(COLUMNS), panels += d * OF(COLUMNS))
        for (ptrdiff_t j = 0; j < OF(COLUMNS); j++)
            for (ptrdiff_t k = 0; k < d; k++)
                panels[k * OF(COLUMNS) + j] = first + j < count ? M[(first + j) * d + k] : 0;
}

/* The products `sums` (HIGH, COLUMNS) of `rows` ≤ HIGH rows of A with a panel. The first row replaces missing rows. */
INLINE void OF(block)(const REAL *A, ptrdiff_t rows, ptrdiff_t by_row, ptrdiff_t d, const REAL *panel, REAL *sums) {
    OF(Lanes) sum[OF(HIGH)][OF(WIDE)] = {{{0}}};
    const REAL *row[OF(HIGH)];
    for (int r = 0; r < OF(HIGH); r++) row[r] = A + (r < rows ? r : 0) * by_row;
    for (ptrdiff_t k = 0; k < d; k++) {
        const OF(Lanes) *columns = (const OF(Lanes) *)(panel + k * OF(COLUMNS)), a = columns[0], b = columns[1];
        for (int r = 0; r < OF(HIGH); r++) {
            sum[r][0] += row[r][k] * a;
            sum[r][1] += row[r][k] * b;
        }
    }
    memcpy(sums, sum, sizeof sum);
}

/* The features of a block of angles. Return true if an angle is not finite. */
INLINE int OF(wave)(
    const REAL *angles, ptrdiff_t rows, ptrdiff_t columns, const REAL *amplitudes, int by_column, REAL *cosine, REAL *sine,
    ptrdiff_t by_row
) {
    int far = 0, lost = 0;
    for (int j = 0; j < OF(HIGH) * OF(COLUMNS); j++) far |= !(SIZE_OF(angles[j]) <= FARTHEST);
    if (far || columns < OF(COLUMNS)) {
        for (ptrdiff_t r = 0; r < rows; r++, angles += OF(COLUMNS), cosine += by_row, sine += by_row)
            lost |= PAIRS(angles, columns, amplitudes + (by_column ? 0 : r), by_column, cosine, sine);
        return lost;
    }
    for (ptrdiff_t r = 0; r < rows; r++, angles += OF(COLUMNS), cosine += by_row, sine += by_row)
        for (int j = 0; j < OF(COLUMNS); j++)
            COS_SIN(angles[j], amplitudes[by_column ? j : r], cosine + j, sine + j);
    return 0;
}

/* The features of rows A (n, d) and `count` columns in panels. One side has the rows of a table, the other the
 * frequencies, depending on the memory order of the output. The amplitudes belong to the columns (`by_column`) or to
 * the rows A. Return true if an angle is not finite. */
OF_MACHINES int KAFEAT(waves)(
    const REAL *A, ptrdiff_t n, ptrdiff_t d, const REAL *panels, ptrdiff_t count, const REAL *amplitudes, int by_column,
    REAL *cosine, REAL *sine, ptrdiff_t by_row
) {
    REAL angles[OF(HIGH) * OF(COLUMNS)] __attribute__((aligned(BYTES))), more[OF(HIGH) * OF(COLUMNS)];
    int lost = 0;
    /* If all panels fit into the cache, HIGH rows at a time go through all panels, otherwise all rows through each panel. */
    ptrdiff_t height = count * d * (ptrdiff_t)sizeof(REAL) <= OF(CACHED) ? OF(HIGH) : n;
    for (ptrdiff_t top = 0; top < n; top += height)
        for (ptrdiff_t j = 0; j < count; j += OF(COLUMNS))
            for (ptrdiff_t i = top; i < n && i < top + height; i += OF(HIGH)) {
                ptrdiff_t rows = n - i < OF(HIGH) ? n - i : OF(HIGH);
                ptrdiff_t columns = count - j < OF(COLUMNS) ? count - j : OF(COLUMNS), at = i * by_row + j;
                const REAL *own = amplitudes + (by_column ? j : i);
                OF(block)(A + i * d, rows, d, d < OF(PRODUCTS) ? d : OF(PRODUCTS), panels + j * d, angles);
                for (ptrdiff_t k = OF(PRODUCTS); k < d; k += OF(PRODUCTS)) {
                    ptrdiff_t left = d - k < OF(PRODUCTS) ? d - k : OF(PRODUCTS);
                    OF(block)(A + i * d + k, rows, d, left, panels + j * d + k * OF(COLUMNS), more);
                    for (int which = 0; which < OF(HIGH) * OF(COLUMNS); which++) angles[which] += more[which];
                }
                if (by_column) lost |= OF(wave)(angles, rows, columns, own, 1, cosine + at, sine + at, by_row);
                else lost |= OF(wave)(angles, rows, columns, own, 0, cosine + at, sine + at, by_row);
            }
    return lost;
}
