/* Loops over the columns of a table (rows, d). */

/* The quantile of the standard normal distribution at p in (0, 1), by Wichura 1988, algorithm AS 241 (PPND16), with an
 * error of about 1e-16. It is one ratio of polynomials, whose coefficients depend on the interval that contains p. */
INLINE double choose(int central, int near, double a, double b, double c) { return central ? a : near ? b : c; }

INLINE double normal_quantile(double p) {
    double q = p - 0.5, tail = p < 0.5 ? p : 1.0 - p;
    int central = fabs(q) <= 0.425;
    double root = sqrt(-log_f64(tail < 2.2250738585072014e-308 ? 2.2250738585072014e-308 : tail));
    int near = root <= 5.0;
    double r = choose(central, near, 0.180625 - q * q, root - 1.6, root - 5.0);
#define UP(y, a, b, c) y * r + choose(central, near, a, b, c)
    double y = choose(central, near, 2.5090809287301226727e3, 7.74545014278341407640e-4, 2.01033439929228813265e-7);
    y = UP(y, 3.3430575583588128105e4, 2.27238449892691845833e-2, 2.71155556874348757815e-5);
    y = UP(y, 6.7265770927008700853e4, 2.41780725177450611770e-1, 1.24266094738807843860e-3);
    y = UP(y, 4.5921953931549871457e4, 1.27045825245236838258e0, 2.65321895265761230930e-2);
    y = UP(y, 1.3731693765509461125e4, 3.64784832476320460504e0, 2.96560571828504891230e-1);
    y = UP(y, 1.9715909503065514427e3, 5.76949722146069140550e0, 1.78482653991729133580e0);
    y = UP(y, 1.3314166789178437745e2, 4.63033784615654529590e0, 5.46378491116411436990e0);
    y = UP(y, 3.3871328727963666080e0, 1.42343711074968357734e0, 6.65790464350110377720e0);
    double z = choose(central, near, 5.2264952788528545610e3, 1.05075007164441684324e-9, 2.04426310338993978564e-15);
    z = UP(z, 2.8729085735721942674e4, 5.47593808499534494600e-4, 1.42151175831644588870e-7);
    z = UP(z, 3.9307895800092710610e4, 1.51986665636164571966e-2, 1.84631831751005468180e-5);
    z = UP(z, 2.1213794301586595867e4, 1.48103976427480074590e-1, 7.86869131145613259100e-4);
    z = UP(z, 5.3941960214247511077e3, 6.89767334985100004550e-1, 1.48753612908506148525e-2);
    z = UP(z, 6.8718700749205790830e2, 1.67638483018380384940e0, 1.36929880922735805310e-1);
    z = UP(z, 4.2313330701600911252e1, 2.05319162663775882187e0, 5.99832206555887937690e-1);
    z = UP(z, 1.0, 1.0, 1.0);
#undef UP
    double size = y / z;
    return central ? q * size : q < 0.0 ? -size : size;
}

/* A search in k ascending numbers. Their range is divided into equal cells. A search for a value in cell c begins at
 * number first[c] and ends less than 2^steps numbers later. */
typedef struct { const double *numbers; const int32_t *first; ptrdiff_t k; double origin, scale, cells; int steps; } Search;

/* For each x the index of the last number that is not above it, or 0. The binary search has no branches, because
 * processors would mispredict them. */
INLINE void last_not_above(const Search *in, const double *x, ptrdiff_t n, int32_t *found) {
    int32_t last = (int32_t)in->k - 1;
    for (ptrdiff_t i = 0; i < n; i++) {
        double cell = (x[i] - in->origin) * in->scale;
        cell = cell > 0.0 ? cell : 0.0;
        found[i] = (int32_t)(cell < in->cells ? cell : in->cells);
    }
    for (ptrdiff_t i = 0; i < n; i++) found[i] = in->first[found[i]];
    for (int32_t half = 1 << in->steps >> 1; half; half >>= 1)
        for (ptrdiff_t i = 0; i < n; i++) {
            int32_t at = found[i], next = at + half < last ? at + half : last;
            found[i] = at + ((next - at) & -(int32_t)(in->numbers[next] <= x[i]));
        }
}

/* The number of columns to read together: those in a cache line. */
enum { TOGETHER = 8 };

/* The distribution function F of each column, interpolated between its k ascending `quantiles`; if clip is above 0, the
 * normal quantile of F, limited to ±clip. `levels` has F at each quantile, which is the mean where several are equal. */
VERSIONS void kafeat_quantile_f64(
    const double *x, ptrdiff_t rows, ptrdiff_t d, const double *quantiles, const double *levels, ptrdiff_t k,
    const int32_t *first, ptrdiff_t cells, const double *scales, const int32_t *steps, double clip, double *out
) {
    double part[TOGETHER][PART], low[PART], high[PART], mean[PART], place[PART], F[TOGETHER][PART];
    int32_t below[PART];
    double step = 1.0 / (double)(k - 1);
    for (ptrdiff_t begin = 0; begin < d; begin += TOGETHER)
        for (ptrdiff_t start = 0; start < rows; start += PART) {
            int columns = (int)(d - begin < TOGETHER ? d - begin : TOGETHER);
            ptrdiff_t n = rows - start < PART ? rows - start : PART;
            const double *from = x + start * d + begin;
            double *to = out + start * d + begin;
            for (ptrdiff_t i = 0; i < n; i++)
                for (int c = 0; c < columns; c++) part[c][i] = from[i * d + c];
            for (int c = 0; c < columns; c++) {
                ptrdiff_t j = begin + c;
                const double *q = quantiles + j * k, *level = levels + j * k, *value = part[c];
                Search column = {q, first + j * cells, k, q[0], scales[j], (double)(cells - 1), steps[j]};
                double last = q[k - 1], *result = F[c];
                last_not_above(&column, value, n, below);
                for (ptrdiff_t i = 0; i < n; i++) {
                    int32_t above = below[i] + 1 < k ? below[i] + 1 : below[i];
                    low[i] = q[below[i]], high[i] = q[above], mean[i] = level[below[i]], place[i] = (double)below[i];
                }
                for (ptrdiff_t i = 0; i < n; i++) {
                    double between = (place[i] + (value[i] - low[i]) / (high[i] - low[i])) * step;
                    between = value[i] >= last ? 1.0 : between;
                    between = value[i] <= low[i] ? 0.0 : between;
                    result[i] = value[i] == low[i] ? mean[i] : between;
                }
                if (clip > 0.0)
                    for (ptrdiff_t i = 0; i < n; i++) {
                        double z = normal_quantile(result[i]);
                        z = result[i] <= 0.0 || z < -clip ? -clip : z;
                        result[i] = result[i] >= 1.0 || z > clip ? clip : z;
                    }
            }
            for (ptrdiff_t i = 0; i < n; i++)
                for (int c = 0; c < columns; c++) to[i * d + c] = F[c][i];
        }
}

/* (y(x) − mean)/scale with y = sign(x)·((1 + |x|)^p − 1)/p, p = exponent for x ≥ 0 and 2 − exponent below. Return
 * true if a result is not finite; NumPy then raises the error. */
VERSIONS int kafeat_power_f64(
    const double *x, ptrdiff_t rows, ptrdiff_t d, const double *exponent, const double *mean, const double *scale,
    double *out
) {
    int lost = 0;
    for (ptrdiff_t i = 0; i < rows; i++, x += d, out += d)
        for (ptrdiff_t j = 0; j < d; j++) {
            double p = x[j] >= 0.0 ? exponent[j] : 2.0 - exponent[j];
            double logs = log1p_f64(fabs(x[j]));
            double bent = expm1_f64(p * logs) / p;
            bent = fabs(p) < 2.220446049250313e-16 ? logs : bent;
            out[j] = (copysign(bent, x[j]) - mean[j]) / scale[j];
            lost |= !(fabs(out[j]) <= 1.7976931348623157e308);
        }
    return lost;
}
