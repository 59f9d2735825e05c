/* TensorSketch of rows, for one precision and vectors of BYTES bytes. */

typedef struct { OF(Lanes) re, im; } OF(Complex);

INLINE void OF(turn)(OF(Complex) *z, REAL re, REAL im) {
    OF(Lanes) old = z->re;
    z->re = old * re - z->im * im;
    z->im = old * im + z->im * re;
}

/* One radix-4 stage of n/length consecutive transforms of `length` numbers each. Their roots of unity are each
 * `step`-th of `turns`. */
INLINE void OF(stage)(OF(Complex) *z, ptrdiff_t n, ptrdiff_t length, ptrdiff_t step, const REAL *turns) {
    ptrdiff_t part = length / 4;
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

/* The discrete Fourier transform of z (n) in place, for n a power of two: radix-4 stages, and a radix-2 stage at the
 * end if needed. The results are not reordered. `turns` has e^(−2πit/n) for all t < n. After the first stage, the
 * quarters are independent, and each is finished before the next, so that it stays in the first-level cache. */
INLINE void OF(transform)(OF(Complex) *z, ptrdiff_t n, const REAL *turns) {
    ptrdiff_t quarter = n >= 4 ? n / 4 : n;
    if (n >= 4) OF(stage)(z, n, n, 1, turns);
    for (OF(Complex) *part = z; part < z + n; part += quarter) {
        ptrdiff_t length = quarter;
        for (; length >= 4; length /= 4) OF(stage)(part, quarter, length, n / length, turns);
        for (OF(Complex) *a = part; length == 2 && a < part + quarter; a += 2) {
            OF(Complex) old = a[0];
            a[0].re = old.re + a[1].re, a[0].im = old.im + a[1].im;
            a[1].re = old.re - a[1].re, a[1].im = old.im - a[1].im;
        }
    }
}

/* Twice the frequency k of 2n real numbers, from the transform z of their pairs as n complex numbers. Numbers at even
 * places give (z_k + conj z_{n−k})/2, and the others (z_k − conj z_{n−k})/2i times `turn` = e^(−πik/n). */
INLINE void OF(untangle)(const OF(Complex) *z, const OF(Complex) *mirror, const REAL *turn, OF(Complex) *out) {
    OF(Complex) odd = {z->im + mirror->im, mirror->re - z->re};
    OF(turn)(&odd, turn[0], turn[1]);
    out->re = z->re + mirror->re + odd.re;
    out->im = z->im - mirror->im + odd.im;
}

/* Add each input x_i, times its factor f_i, to its bucket b_i. The last input, x_d, is the constant 1. */
INLINE void OF(count)(
    const REAL *inputs, ptrdiff_t d, const int32_t *buckets, const REAL *factors, OF(Lanes) *sketch
) {
    for (ptrdiff_t i = 0; i < d; i++) sketch[buckets[i]] += ((const OF(Lanes) *)inputs)[i] * factors[i];
    sketch[buckets[d]] += factors[d];
}

/* The same for sparse rows (CSR): row i has values[starts[i]] to values[starts[i + 1] − 1]. */
INLINE void OF(count_sparse)(
    const REAL *values, const int64_t *columns, const int64_t *starts, ptrdiff_t rows, ptrdiff_t d, const int32_t *buckets,
    const REAL *factors, OF(Lanes) *sketch
) {
    for (ptrdiff_t lane = 0; lane < rows; lane++)
        for (int64_t e = starts[lane]; e < starts[lane + 1]; e++)
            ((REAL *)(sketch + buckets[columns[e]]))[lane] += values[e] * factors[columns[e]];
    sketch[buckets[d]] += factors[d];
}

/* The sketch approximates the whole kernel, or the kernel without terms that other outputs have exactly: without the
 * constant term, or also without the linear ones. */
enum OF(Rest) { OF(WHOLE) = 0, OF(BUT_CONSTANT) = 1, OF(BUT_LINEAR) = 2 };

INLINE OF(Complex) OF(times)(OF(Complex) a, OF(Complex) b) {
    return (OF(Complex)){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* Multiply by the next factor, x + c, of Π_q (x_q + c_q) at one frequency. `product` has the terms of the expansion
 * with all x (WHOLE), at least one x (BUT_CONSTANT) or at least two (BUT_LINEAR; `lower` has those with one). `below`
 * is the product of the previous c. */
INLINE void OF(multiply)(
    OF(Complex) x, const REAL *c, const REAL *below, int rest, OF(Complex) *product, OF(Complex) *lower
) {
    if (rest == OF(WHOLE)) {
        *product = OF(times)(*product, x);
        return;
    }
    OF(Complex) one = x, more = {x.re + c[0], x.im + c[1]};
    OF(turn)(&one, below[0], below[1]);
    if (rest == OF(BUT_LINEAR)) {
        OF(Complex) two = OF(times)(*lower, x);
        OF(turn)(lower, c[0], c[1]);
        lower->re += one.re, lower->im += one.im;
        one = two;
    }
    more = OF(times)(*product, more);
    product->re = more.re + one.re, product->im = more.im + one.im;
}

/* Multiply the products by frequencies `first` to `last` of a sketch of 2n numbers, whose transform is z. The first
 * sketch starts the products, with its frequencies times amplitudes. */
INLINE void OF(take)(
    const OF(Complex) *z, ptrdiff_t n, const REAL *half_turns, const int32_t *places, const REAL *amplitudes, int begins,
    const REAL *c, const REAL *below, int rest, ptrdiff_t first, ptrdiff_t last, OF(Complex) *products, OF(Complex) *lowers
) {
    for (ptrdiff_t k = first; k <= last; k++) {
        OF(Complex) x;
        OF(untangle)(z + places[k == n ? 0 : k], z + places[k == 0 ? 0 : n - k], half_turns + 2 * k, &x);
        if (begins) {
            x.re *= amplitudes[k], x.im *= amplitudes[k];
            products[k] = rest == OF(BUT_LINEAR) ? (OF(Complex)){{0}, {0}} : x;
            if (rest == OF(BUT_LINEAR)) lowers[k] = x;
        } else {
            OF(multiply)(x, c + 2 * k, below + 2 * k, rest, products + k, lowers + k);
        }
    }
}

/* The product of the spectra of `degree` count sketches of 2n buckets, from frequency `first` (0 or 1) on, times
 * amplitudes (n + 1), or the part of it that `rest` selects. Then constants[q][k] (degree, n + 1; complex) is the
 * constant of sketch q at frequency k, and below[q][k] the product of the constants of earlier sketches and the
 * amplitude. `factors` are half of the true ones, because `untangle` returns twice the frequency. `turns` has
 * e^(−2πit/n) for t < n, `half_turns` has e^(−πit/n) for t ≤ n, and places[t] is the position of frequency t in a
 * transform. `work` holds LANES·(d + 6n + 4) numbers. X has dense rows or, if `starts` is not null, the values of
 * sparse rows. Return true if a result is not finite. */
OF_MACHINES int KAFEAT(tensor_sketch)(
    const REAL *X, const int64_t *columns, const int64_t *starts, ptrdiff_t rows, ptrdiff_t d,
    const int32_t *buckets, const REAL *factors, ptrdiff_t degree, ptrdiff_t n,
    const REAL *turns, const REAL *half_turns, const int32_t *places, const REAL *amplitudes,
    const REAL *constants, const REAL *below, int rest, ptrdiff_t first, ptrdiff_t count,
    REAL *work, REAL *out, ptrdiff_t by_row, ptrdiff_t by_output
) {
    int lost = 0;
    OF(Lanes) *inputs = (OF(Lanes) *)work, *sketch = inputs + d;
    OF(Complex) *z = (OF(Complex) *)sketch, *P = z + n, *Q = P + n + 1;
    for (ptrdiff_t start = 0; start < rows; start += OF(LANES)) {
        ptrdiff_t here = rows - start < OF(LANES) ? rows - start : OF(LANES), last = count / 2;
        if (!starts) OF(gather)(X + start * d, here, d, inputs);
        for (ptrdiff_t q = 0; q < degree; q++) {
            const int32_t *bucket = buckets + q * (d + 1);
            const REAL *factor = factors + q * (d + 1), *c = constants + q * 2 * (n + 1), *b = below + q * 2 * (n + 1);
            memset(sketch, 0, (size_t)n * sizeof(OF(Complex)));
            if (starts) OF(count_sparse)(X, columns, starts + start, here, d, bucket, factor, sketch);
            else OF(count)((const REAL *)inputs, d, bucket, factor, sketch);
            OF(transform)(z, n, turns);
            if (rest == OF(WHOLE))
                OF(take)(z, n, half_turns, places, amplitudes, q == 0, c, b, OF(WHOLE), first, last, P, Q);
            else if (rest == OF(BUT_CONSTANT))
                OF(take)(z, n, half_turns, places, amplitudes, q == 0, c, b, OF(BUT_CONSTANT), first, last, P, Q);
            else OF(take)(z, n, half_turns, places, amplitudes, q == 0, c, b, OF(BUT_LINEAR), first, last, P, Q);
        }
        /* The outputs are Re P_first, Im P_first, … without Im P_0, which is 0. */
        OF(Lanes) *outputs = (OF(Lanes) *)P + 2 * first;
        if (first == 0) outputs[1] = outputs[0], outputs++;
        lost |= OF(spread)(outputs, here, count, out + start * by_row, by_row, by_output);
    }
    return lost;
}
