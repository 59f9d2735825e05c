/* Products of signs and Walsh–Hadamard transforms, for one precision and vectors of BYTES bytes. A transform of p = n·LANES
 * numbers in a row goes over the n vectors, and within each vector; LANES rows side by side go over p vectors. */

/* One level: pairs of vectors that are `step` apart become their sum and their difference. */
INLINE void OF(pair)(OF(Lanes) *a, OF(Lanes) *b) {
    OF(Lanes) old = *a;
    *a = old + *b;
    *b = old - *b;
}

/* Three levels at once, so that a vector is loaded once for three: 8 vectors that are `step` apart. */
INLINE void OF(levels)(OF(Lanes) *x, ptrdiff_t step) {
    OF(Lanes) v[8];
    for (int i = 0; i < 8; i++) v[i] = x[i * step];
    for (int width = 1; width < 8; width *= 2)
        for (int i = 0; i < 8; i++)
            if (!(i & width)) OF(pair)(v + i, v + i + width);
    for (int i = 0; i < 8; i++) x[i * step] = v[i];
}

/* The transform over n vectors, n a power of two, in place. */
INLINE void OF(butterflies)(OF(Lanes) *x, ptrdiff_t n) {
    ptrdiff_t step = 1;
    for (; 8 * step <= n; step *= 8)
        for (ptrdiff_t first = 0; first < n; first += 8 * step)
            for (ptrdiff_t i = first; i < first + step; i++) OF(levels)(x + i, step);
    for (; 2 * step <= n; step *= 2)
        for (ptrdiff_t first = 0; first < n; first += 2 * step)
            for (ptrdiff_t i = first; i < first + step; i++) OF(pair)(x + i, x + i + step);
}

/* The transform within `count` vectors: products with the matrix H of LANES rows. */
INLINE void OF(within)(OF(Lanes) *x, ptrdiff_t count, const OF(Lanes) *H) {
    OF(Lanes) sums[8];
    const REAL *numbers = (const REAL *)x;
    for (int i = 0; i < count; i++) sums[i] = H[0] * numbers[i * OF(LANES)];
    for (int k = 1; k < OF(LANES); k++)
        for (int i = 0; i < count; i++) sums[i] += H[k] * numbers[i * OF(LANES) + k];
    for (int i = 0; i < count; i++) x[i] = sums[i];
}

/* The transform of n·LANES numbers in a row. */
INLINE void OF(row_transform)(OF(Lanes) *x, ptrdiff_t n, const OF(Lanes) *H) {
    if (n == 1) OF(within)(x, 1, H);
    else if (n == 2) OF(within)(x, 2, H);
    else if (n == 4) OF(within)(x, 4, H);
    else
        for (ptrdiff_t i = 0; i < n; i += 8) OF(within)(x + i, 8, H);
    OF(butterflies)(x, n);
}

INLINE void OF(hadamard_matrix)(OF(Lanes) *H) {
    for (int i = 0; i < OF(LANES); i++)
        for (int j = 0; j < OF(LANES); j++) ((REAL *)(H + i))[j] = __builtin_popcount(i & j) & 1 ? -1 : 1;
}

/* Blocks of p directions: H diag(f_L) Π … H diag(f_1) x, zeros behind the d inputs; Π reads number permutation[j] for j. */
typedef struct {
    const REAL *first;           /* f_1, (blocks, d) */
    const REAL *factors;         /* the others, (blocks, layers, p) */
    const int64_t *permutations; /* (blocks, p), or NULL where numbers stay in their places */
    const REAL *radii;           /* factors of the results, (m,) */
    ptrdiff_t d, p, layers, m;
} OF(Directions);

/* The m angles of one row. `spare` is used where numbers change places. */
INLINE void OF(row_angles)(
    const REAL *x, const OF(Directions) *all, const OF(Lanes) *H, REAL *work, REAL *spare, REAL *angles
) {
    ptrdiff_t d = all->d, p = all->p, n = p / OF(LANES);
    for (ptrdiff_t start = 0, block = 0; start < all->m; start += p, block++) {
        const REAL *first = all->first + block * d, *factors = all->factors + block * all->layers * p;
        for (ptrdiff_t j = 0; j < d; j++) work[j] = x[j] * first[j];
        for (ptrdiff_t j = d; j < p; j++) work[j] = 0;
        OF(row_transform)((OF(Lanes) *)work, n, H);
        for (ptrdiff_t layer = 0; layer < all->layers; layer++, factors += p) {
            if (all->permutations) {
                const int64_t *from = all->permutations + block * p;
                for (ptrdiff_t j = 0; j < p; j++) spare[j] = work[from[j]];
                for (ptrdiff_t j = 0; j < p; j++) work[j] = spare[j] * factors[j];
            } else
                for (ptrdiff_t j = 0; j < p; j++) work[j] *= factors[j];
            OF(row_transform)((OF(Lanes) *)work, n, H);
        }
        ptrdiff_t wanted = all->m - start < p ? all->m - start : p;
        for (ptrdiff_t j = 0; j < wanted; j++) angles[start + j] = work[j] * all->radii[start + j];
    }
}

/* The same of `count` ≤ LANES rows side by side, whose angles lie `step` numbers apart. */
INLINE void OF(side_by_side)(
    const OF(Lanes) *x, ptrdiff_t count, const OF(Directions) *all, OF(Lanes) *work, OF(Lanes) *spare, REAL *angles,
    ptrdiff_t step
) {
    ptrdiff_t d = all->d, p = all->p;
    for (ptrdiff_t start = 0, block = 0; start < all->m; start += p, block++) {
        const REAL *first = all->first + block * d, *factors = all->factors + block * all->layers * p;
        for (ptrdiff_t j = 0; j < d; j++) work[j] = x[j] * first[j];
        for (ptrdiff_t j = d; j < p; j++) work[j] = (OF(Lanes)){0};
        OF(butterflies)(work, p);
        for (ptrdiff_t layer = 0; layer < all->layers; layer++, factors += p) {
            if (all->permutations) {
                const int64_t *from = all->permutations + block * p;
                for (ptrdiff_t j = 0; j < p; j++) spare[j] = work[from[j]];
                for (ptrdiff_t j = 0; j < p; j++) work[j] = spare[j] * factors[j];
            } else
                for (ptrdiff_t j = 0; j < p; j++) work[j] *= factors[j];
            OF(butterflies)(work, p);
        }
        for (ptrdiff_t j = 0; j < p && start + j < all->m; j++) {
            OF(Lanes) scaled = work[j] * all->radii[start + j];
            memcpy(angles + (start + j) * step, &scaled, count * sizeof(REAL));
        }
    }
}

/* The angles of rows X (rows, d), with a run for each row or, if `by_column`, for each column. `buffer` has room for
 * (2p + d)·LANES numbers. */
OF_MACHINES void KAFEAT(structured)(
    const REAL *X, ptrdiff_t rows, ptrdiff_t d, ptrdiff_t p, ptrdiff_t layers, ptrdiff_t m, const REAL *first,
    const REAL *factors, const int64_t *permutations, const REAL *radii, int by_column, REAL *angles, ptrdiff_t step,
    REAL *buffer
) {
    OF(Directions) all = {first, factors, permutations, radii, d, p, layers, m};
    OF(Lanes) H[OF(LANES)], *inputs = (OF(Lanes) *)(buffer + 2 * p * OF(LANES));
    OF(hadamard_matrix)(H);
    if (!by_column) {
        for (ptrdiff_t i = 0; i < rows; i++) OF(row_angles)(X + i * d, &all, H, buffer, buffer + p, angles + i * step);
        return;
    }
    for (ptrdiff_t i = 0; i < rows; i += OF(LANES)) {
        ptrdiff_t count = rows - i < OF(LANES) ? rows - i : OF(LANES);
        for (ptrdiff_t lane = 0; lane < OF(LANES); lane++) /* the last rows once more, where there are too few */
            for (ptrdiff_t j = 0; j < d; j++)
                ((REAL *)(inputs + j))[lane] = X[(i + (lane < count ? lane : 0)) * d + j];
        OF(side_by_side)
        (inputs, count, &all, (OF(Lanes) *)buffer, (OF(Lanes) *)buffer + p, angles + i, step);
    }
}
