/* TensorSketch of rows, for one precision. LANES rows go side by side, each in a lane of its own: all lanes have the same
 * operations, so a row's numbers do not depend on its place or on its neighbours. */

enum { OF(LANES) = 32 / sizeof(REAL) };
typedef REAL OF(Lanes) __attribute__((vector_size(32), aligned(sizeof(REAL)), may_alias));
typedef struct { OF(Lanes) re, im; } OF(Complex);

INLINE void OF(turn)(OF(Complex) *z, REAL re, REAL im) {
    OF(Lanes) old = z->re;
    z->re = old * re - z->im * im;
    z->im = old * im + z->im * re;
}

/* The discrete Fourier transform of z (n), n a power of two, in place, in quarters and at last in halves. The results
 * stand in the order that they come in. `turns` has e^(−2πit/n) for all t < n. */
INLINE void OF(transform)(OF(Complex) *z, ptrdiff_t n, const REAL *turns) {
    ptrdiff_t length = n;
    for (; length >= 4; length /= 4) {
        ptrdiff_t part = length / 4, step = n / length;
        for (ptrdiff_t first = 0; first < n; first += length)
            for (ptrdiff_t j = 0; j < part; j++) {
                OF(Complex) *a = z + first + j, *b = a + part, *c = b + part, *d = c + part;
                OF(Complex) even = {a->re + c->re, a->im + c->im}, odd = {a->re - c->re, a->im - c->im};
                OF(Complex) sum = {b->re + d->re, b->im + d->im}, gap = {b->im - d->im, d->re - b->re};
                const REAL *one = turns + 2 * step * j, *two = turns + 4 * step * j, *three = turns + 6 * step * j;
                a->re = even.re + sum.re, a->im = even.im + sum.im;
                b->re = odd.re + gap.re, b->im = odd.im + gap.im;
                c->re = even.re - sum.re, c->im = even.im - sum.im;
                d->re = odd.re - gap.re, d->im = odd.im - gap.im;
                OF(turn)(b, one[0], one[1]);
                OF(turn)(c, two[0], two[1]);
                OF(turn)(d, three[0], three[1]);
            }
    }
    for (ptrdiff_t first = 0; length == 2 && first < n; first += 2) {
        OF(Complex) *a = z + first, *b = a + 1, old = *a;
        a->re = old.re + b->re, a->im = old.im + b->im;
        b->re = old.re - b->re, b->im = old.im - b->im;
    }
}

/* Frequency k of 2n real numbers, whose pairs had the transform z: of the even numbers that is (z_k + conj z_{n−k})/2, of
 * the odd ones (z_k − conj z_{n−k})/2i, and their turn is e^(−πik/n). Twice that, as `turn` has no halves. */
INLINE void OF(untangle)(const OF(Complex) *z, const OF(Complex) *mirror, const REAL *turn, OF(Complex) *out) {
    OF(Complex) odd = {z->im + mirror->im, mirror->re - z->re};
    OF(turn)(&odd, turn[0], turn[1]);
    out->re = z->re + mirror->re + odd.re;
    out->im = z->im - mirror->im + odd.im;
}

/* Each input x_i goes to bucket b_i with the factor f_i, and then the constant 1 to the last one. */
INLINE void OF(count)(
    const REAL *inputs, ptrdiff_t d, const int32_t *buckets, const REAL *factors, OF(Lanes) *sketch
) {
    for (ptrdiff_t i = 0; i < d; i++) sketch[buckets[i]] += ((const OF(Lanes) *)inputs)[i] * factors[i];
    sketch[buckets[d]] += factors[d];
}

/* The same for rows in compressed form: row i has values[starts[i]] to values[starts[i + 1] − 1]. */
INLINE void OF(count_sparse)(
    const REAL *values, const int64_t *columns, const int64_t *starts, ptrdiff_t rows, ptrdiff_t d, const int32_t *buckets,
    const REAL *factors, OF(Lanes) *sketch
) {
    for (ptrdiff_t lane = 0; lane < rows; lane++)
        for (int64_t e = starts[lane]; e < starts[lane + 1]; e++)
            ((REAL *)(sketch + buckets[columns[e]]))[lane] += values[e] * factors[columns[e]];
    sketch[buckets[d]] += factors[d];
}

/* Frequency k of 0 to n of the product of sketches, times the frequency of a further one, or of the first one. The first
 * and the last frequency have no imaginary part. */
INLINE void OF(multiply)(
    OF(Lanes) *product, ptrdiff_t k, ptrdiff_t n, int first, const REAL *amplitudes, OF(Complex) value
) {
    ptrdiff_t at = k ? 2 * k - 1 : 0;
    OF(Lanes) *re = product + at, *im = re + 1, old;
    if (k == 0 || k == n) {
        *re = (first ? value.re * amplitudes[at] : *re * value.re);
    } else if (first) {
        *re = value.re * amplitudes[at];
        *im = value.im * amplitudes[at + 1];
    } else {
        old = *re;
        *re = old * value.re - *im * value.im;
        *im = old * value.im + *im * value.re;
    }
}

/* The product of the spectra of `degree` count sketches, in the order Re P_0, Re P_1, Im P_1, …, Re P_{D/2}, times
 * amplitudes. `factors` are halves of what they should be, for `untangle`. With n = D/2, `turns` has e^(−2πit/n) for t < n,
 * `half_turns` e^(−πit/n) for t ≤ n, and `places` says where frequency t < n of a transform stands. `work` holds
 * LANES·(d + 2D) numbers. X has dense rows, or the values of sparse ones, if there are `starts`. True if a result is no
 * number. */
VERSIONS int KAFEAT(tensor_sketch)(
    const REAL *X, const int64_t *columns, const int64_t *starts, ptrdiff_t rows, ptrdiff_t d,
    const int32_t *buckets, const REAL *factors, ptrdiff_t degree, ptrdiff_t D,
    const REAL *turns, const REAL *half_turns, const int32_t *places, const REAL *amplitudes, REAL *work, REAL *out,
    ptrdiff_t by_row, ptrdiff_t by_output
) {
    int lost = 0;
    ptrdiff_t n = D / 2;
    REAL *inputs = work, *sketch = inputs + d * OF(LANES), *product = sketch + D * OF(LANES);
    OF(Complex) *z = (OF(Complex) *)sketch;
    OF(Lanes) *P = (OF(Lanes) *)product;
    for (ptrdiff_t start = 0; start < rows; start += OF(LANES)) {
        ptrdiff_t here = rows - start < OF(LANES) ? rows - start : OF(LANES);
        const REAL *x = X + start * d;
        for (ptrdiff_t i = 0; !starts && i < d; i++)
            for (ptrdiff_t lane = 0; lane < OF(LANES); lane++)
                inputs[i * OF(LANES) + lane] = x[(lane < here ? lane : 0) * d + i];
        for (ptrdiff_t q = 0; q < degree; q++) {
            const int32_t *bucket = buckets + q * (d + 1);
            const REAL *factor = factors + q * (d + 1);
            memset(sketch, 0, (size_t)D * sizeof(OF(Lanes)));
            if (starts) OF(count_sparse)(X, columns, starts + start, here, d, bucket, factor, (OF(Lanes) *)sketch);
            else OF(count)(inputs, d, bucket, factor, (OF(Lanes) *)sketch);
            OF(transform)(z, n, turns);
            for (ptrdiff_t k = 0; k <= n; k++) {
                OF(Complex) value, *at = z + places[k == n ? 0 : k], *mirror = z + places[k == 0 ? 0 : n - k];
                OF(untangle)(at, mirror, half_turns + 2 * k, &value);
                OF(multiply)(P, k, n, q == 0, amplitudes, value);
            }
        }
        REAL *to = out + start * by_row;
        for (ptrdiff_t lane = 0; lane < here; lane++)
            for (ptrdiff_t j = 0; j < D; j++) {
                REAL value = product[j * OF(LANES) + lane];
                to[lane * by_row + j * by_output] = value;
                lost |= !(OF(size)(value) <= OF(LARGEST));
            }
    }
    return lost;
}
