/* Sums over columns of a function of x and l, for rows x and landmarks l, for one precision and vectors of BYTES bytes.
 * The sums of SIDE rows with ACROSS vectors of landmarks (a panel) each have a register. Partial sums of TERMS columns
 * are added up, because one long sum would lose more digits. */
enum { OF(SIDE) = 4, OF(ACROSS) = BYTES / 16, OF(PANEL) = OF(ACROSS) * OF(LANES) };
enum { OF(TERMS) = 64 };
enum OF(Term) { OF(HARMONIC) = 0, OF(CITYBLOCK) = 1, OF(INTERSECTION) = 2 };

INLINE void OF(add_term)(OF(Lanes) *sum, REAL x, const OF(Lanes) *landmarks, int term) {
    OF(Lanes) l = *landmarks, value = x - (OF(Lanes)){0}, difference = value - l;
    if (term == OF(HARMONIC)) *sum += x / ((x == 0 ? 1 : x) + l) * l; /* 0/0 counts as 0 */
    else if (term == OF(CITYBLOCK)) *sum += (OF(Lanes))((OF(Words))difference & LARGEST_WORD);
    else {
        OF(Words) below = (OF(Words))(value < l);
        *sum += (OF(Lanes))((below & (OF(Words))value) | (~below & (OF(Words))l));
    }
}

/* The sums `total` (SIDE, PANEL) of `rows` ≤ SIDE rows of X (n, d) with a panel. The first row replaces missing rows. */
INLINE void OF(add_terms)(const REAL *X, ptrdiff_t rows, ptrdiff_t d, const REAL *panel, int term, REAL *total) {
    const REAL *row[OF(SIDE)];
    for (int r = 0; r < OF(SIDE); r++) row[r] = X + (r < rows ? r : 0) * d;
    memset(total, 0, OF(SIDE) * OF(PANEL) * sizeof(REAL));
    for (ptrdiff_t first = 0; first < d; first += OF(TERMS)) {
        OF(Lanes) sum[OF(SIDE)][OF(ACROSS)] = {{{0}}};
        ptrdiff_t stop = first + OF(TERMS) < d ? first + OF(TERMS) : d;
        for (ptrdiff_t k = first; k < stop; k++) {
            const OF(Lanes) *l = (const OF(Lanes) *)(panel + k * OF(PANEL));
            for (int r = 0; r < OF(SIDE); r++)
                for (int v = 0; v < OF(ACROSS); v++) OF(add_term)(&sum[r][v], row[r][k], l + v, term);
        }
        for (int r = 0; r < OF(SIDE); r++)
            for (int v = 0; v < OF(ACROSS); v++) *(OF(Lanes) *)(total + r * OF(PANEL) + v * OF(LANES)) += sum[r][v];
    }
}

/* The sums `out` (rows, m) of rows X (rows, d) with m landmarks, in consecutive panels (d, PANEL), of which the last is
 * padded. */
OF_MACHINES void KAFEAT(sums)(
    const REAL *X, ptrdiff_t rows, ptrdiff_t d, const REAL *panels, ptrdiff_t m, int term, REAL *out
) {
    REAL total[OF(SIDE) * OF(PANEL)] __attribute__((aligned(BYTES)));
    for (ptrdiff_t start = 0; start < m; start += OF(PANEL), panels += d * OF(PANEL))
        for (ptrdiff_t i = 0; i < rows; i += OF(SIDE)) {
            ptrdiff_t here = rows - i < OF(SIDE) ? rows - i : OF(SIDE), n = m - start < OF(PANEL) ? m - start : OF(PANEL);
            if (term == OF(HARMONIC)) OF(add_terms)(X + i * d, here, d, panels, OF(HARMONIC), total);
            else if (term == OF(CITYBLOCK)) OF(add_terms)(X + i * d, here, d, panels, OF(CITYBLOCK), total);
            else OF(add_terms)(X + i * d, here, d, panels, OF(INTERSECTION), total);
            for (ptrdiff_t r = 0; r < here; r++)
                memcpy(out + (i + r) * m + start, total + r * OF(PANEL), (size_t)n * sizeof(REAL));
        }
}
