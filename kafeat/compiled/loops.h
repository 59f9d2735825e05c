/* Loops for one precision, REAL. A matrix has `outer` runs of `inner` contiguous numbers: rows in C order, columns in
 * Fortran order. Strides between runs are counted in numbers. */

/* Cosines and sines of a run of angles, times an amplitude for each angle (`step` 1) or one for all (`step` 0). Return
 * true if an angle is not finite; NumPy then raises the error. */
INLINE int OF(pairs)(const REAL *x, ptrdiff_t n, const REAL *a, int step, REAL *cosine, REAL *sine) {
    int far = 0, lost = 0;
    for (ptrdiff_t j = 0; j < n; j++) {
        OF(cos_sin)(x[j], step ? a[j] : a[0], cosine + j, sine + j);
        far |= !(OF(size)(x[j]) <= OF(FARTHEST));
    }
    for (ptrdiff_t j = 0; far && j < n; j++) /* The C library is accurate for large angles, which are rare. */
        if (!(OF(size)(x[j]) <= OF(FARTHEST))) {
            cosine[j] = a[step * j] * (REAL)cos((double)x[j]);
            sine[j] = a[step * j] * (REAL)sin((double)x[j]);
            lost |= !isfinite(x[j]);
        }
    return lost;
}

VERSIONS int KAFEAT(cos_sin)(
    const REAL *angles, ptrdiff_t outer, ptrdiff_t inner, ptrdiff_t from, const REAL *amplitudes, int by_inner,
    REAL *cosine, REAL *sine, ptrdiff_t to
) {
    int lost = 0;
    for (ptrdiff_t i = 0; i < outer; i++, angles += from, cosine += to, sine += to)
        lost |= by_inner ? OF(pairs)(angles, inner, amplitudes, 1, cosine, sine)
                         : OF(pairs)(angles, inner, amplitudes + i, 0, cosine, sine);
    return lost;
}

/* a·cos(x + b). The sines go into a buffer that nobody reads, because computing them as well adds only a tenth. */
VERSIONS int KAFEAT(cosine)(
    const REAL *angles, ptrdiff_t outer, ptrdiff_t inner, ptrdiff_t from, const REAL *phases, const REAL *amplitudes,
    int by_inner, REAL *cosine, ptrdiff_t to
) {
    REAL moved[PART], sines[PART];
    int lost = 0;
    for (ptrdiff_t i = 0; i < outer; i++)
        for (ptrdiff_t start = 0; start < inner; start += PART) {
            ptrdiff_t n = inner - start < PART ? inner - start : PART, which = by_inner ? start : i;
            const REAL *x = angles + i * from + start, *b = phases + which, *a = amplitudes + which;
            REAL *out = cosine + i * to + start;
            if (by_inner) {
                for (ptrdiff_t j = 0; j < n; j++) moved[j] = x[j] + b[j];
                lost |= OF(pairs)(moved, n, a, 1, out, sines);
            } else {
                for (ptrdiff_t j = 0; j < n; j++) moved[j] = x[j] + b[0];
                lost |= OF(pairs)(moved, n, a, 0, out, sines);
            }
        }
    return lost;
}

/* Replace scaled squared distances c·r² by the values of a kernel, in place. */
enum OF(Profile) { OF(GAUSSIAN) = 0, OF(MATERN_1) = 1, OF(RATIONAL_QUADRATIC) = 2, OF(MATERN_3) = 3, OF(MATERN_5) = 5 };

VERSIONS void KAFEAT(profile)(REAL *x, ptrdiff_t n, int profile, REAL alpha) {
    if (profile == OF(GAUSSIAN)) /* c is negative, so only rounding makes c·r² positive */
        for (ptrdiff_t j = 0; j < n; j++) x[j] = OF(exp)(x[j] > 0 ? 0 : x[j]);
    else if (profile == OF(RATIONAL_QUADRATIC))
        for (ptrdiff_t j = 0; j < n; j++) x[j] = OF(exp)(-alpha * OF(log1p)(x[j] < 0 ? 0 : x[j]));
    else
        for (ptrdiff_t j = 0; j < n; j++) {
            REAL s = OF(root)(x[j] < 0 ? 0 : x[j]);
            s = s > 10000 ? 10000 : s; /* the kernel is 0 from here on, and s² stays finite */
            REAL square = s * s * (REAL)(1.0 / 3.0), decay = OF(exp)(-s);
            REAL polynomial = profile == OF(MATERN_1) ? 1 : profile == OF(MATERN_3) ? 1 + s : 1 + s + square;
            x[j] = polynomial * decay;
        }
}

/* A homogeneous map of entries x: a₀r and, for each frequency, a_j r cos(ω_j log x) and a_j r sin(ω_j log x), where r
 * is √x, or x if `linear`. With `is_signed`, |x| replaces x, and r gets the sign of x. Each of these outputs is `block`
 * numbers after the previous one. */
VERSIONS void KAFEAT(homogeneous)(
    const REAL *x, ptrdiff_t outer, ptrdiff_t inner, ptrdiff_t from, const REAL *frequencies, const REAL *amplitudes,
    ptrdiff_t order, int linear, int is_signed, REAL *out, ptrdiff_t to, ptrdiff_t block
) {
    REAL root[PART], logs[PART], angles[PART], scaled[PART];
    for (ptrdiff_t i = 0; i < outer; i++)
        for (ptrdiff_t start = 0; start < inner; start += PART) {
            ptrdiff_t n = inner - start < PART ? inner - start : PART;
            const REAL *entries = x + i * from + start;
            REAL *target = out + i * to + start;
            for (ptrdiff_t j = 0; j < n; j++) {
                REAL entry = is_signed ? OF(size)(entries[j]) : entries[j];
                /* the root of 0 is 0, so its logarithm does not matter */
                logs[j] = OF(log)(entry > 0 ? entry : 1);
                root[j] = linear ? entry : OF(root)(entry);
                root[j] = is_signed && entries[j] < 0 ? -root[j] : root[j];
                target[j] = root[j] * amplitudes[0];
            }
            for (ptrdiff_t which = 0; which < order; which++) {
                REAL frequency = frequencies[which], amplitude = amplitudes[which + 1];
                REAL *cosine = target + (2 * which + 1) * block;
                for (ptrdiff_t j = 0; j < n; j++) {
                    angles[j] = logs[j] * frequency;
                    scaled[j] = root[j] * amplitude;
                }
                OF(pairs)(angles, n, scaled, 1, cosine, cosine + block);
            }
        }
}
