/* Cosines and sines of products of rows with frequencies, for one precision and vectors of BYTES bytes: an angle goes from
 * registers to its features and is never in memory. */

/* HIGH rows of one side times WIDE vectors of the other have a register for each sum, 24 of 32. */
enum { OF(HIGH) = 12, OF(WIDE) = 2, OF(COLUMNS) = OF(WIDE) * BYTES / sizeof(REAL) };
/* Bytes of the side that is read again and again, if it stays in the second-level cache; and how many products are summed
 * at a time: sums of sums lose less than one long sum. */
enum { OF(CACHED) = 1 << 19, OF(PRODUCTS) = 128 };

/* Rows M (count, d) as panels: COLUMNS of them side by side, one panel behind the other, the last one filled with zeros. */
OF_MACHINES void KAFEAT(panels)(const REAL *M, ptrdiff_t count, ptrdiff_t d, REAL *panels) {
    for (ptrdiff_t first = 0; first < count; first += OF(COLUMNS), panels += d * OF(COLUMNS))
        for (ptrdiff_t j = 0; j < OF(COLUMNS); j++)
            for (ptrdiff_t k = 0; k < d; k++)
                panels[k * OF(COLUMNS) + j] = first + j < count ? M[(first + j) * d + k] : 0;
}

/* HIGH rows of A, of which the first `rows` are there, times a panel. */
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

/* The features of a block of angles. True if an angle is no number. */
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

/* Rows A (n, d) times `count` columns in panels, and the amplitudes of these, or of the rows. One of the sides has the rows
 * of a table, the other the frequencies: as the output lies in memory. True if an angle is no number. */
OF_MACHINES int KAFEAT(waves)(
    const REAL *A, ptrdiff_t n, ptrdiff_t d, const REAL *panels, ptrdiff_t count, const REAL *amplitudes, int by_column,
    REAL *cosine, REAL *sine, ptrdiff_t by_row
) {
    REAL angles[OF(HIGH) * OF(COLUMNS)] __attribute__((aligned(BYTES))), more[OF(HIGH) * OF(COLUMNS)];
    int lost = 0;
    /* Few columns stay in the cache, and outputs are written along the rows; of many, each panel has all rows in turn. */
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
