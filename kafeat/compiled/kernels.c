/* Loops for which NumPy needs several passes. The package also has a NumPy form of each: it is used if this library
 * could not be built, and tests compare both.
 *
 * Every output is computed from its own inputs by the same operations, wherever it is in an array, so results do not
 * depend on tiles, threads or other rows. The build fuses a*b + c where the processor can. A sum of two products could
 * be fused in two ways, so sums have only one product, or whole vectors of rows go through the same operations. */

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The compiler makes code for each of these instruction sets, and the loader chooses the best for the processor. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && (!defined(__clang__) || __clang_major__ >= 16)
#define VERSIONS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VERSIONS
#endif
#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

/* Loops over vectors of rows use the 64-byte registers of AVX-512. For other processors, the compiler would split such
 * vectors into single numbers, so a second version of the loops has vectors of 32 bytes. */
#if defined(__x86_64__) && defined(__GNUC__) && (!defined(__clang__) || __clang_major__ >= 16)
#define FOR_AVX512 __attribute__((target("arch=x86-64-v4")))
int kafeat_vector_bytes(void) { /* the parts of x86-64-v4, because not all compilers know this name here */
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")
                   && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd")
               ? 64
               : 32;
}
#else
int kafeat_vector_bytes(void) { return 32; }
#endif

static const float LARGEST_f32 = FLT_MAX;
static const double LARGEST_f64 = DBL_MAX;

/* The length of buffers between two loops, which stay in the first-level cache. */
enum { PART = 256 };

INLINE float size_f32(float x) { return fabsf(x); }
INLINE double size_f64(double x) { return fabs(x); }
INLINE float root_f32(float x) { return sqrtf(x); }
INLINE double root_f64(double x) { return sqrt(x); }
INLINE uint32_t bits_f32(float x) { uint32_t b; memcpy(&b, &x, 4); return b; }
INLINE float from_f32(uint32_t b) { float x; memcpy(&x, &b, 4); return x; }
INLINE uint64_t bits_f64(double x) { uint64_t b; memcpy(&b, &x, 8); return b; }
INLINE double from_f64(uint64_t b) { double x; memcpy(&x, &b, 8); return x; }

/* All polynomials interpolate at Chebyshev points. Their coefficients were computed with 50 digits.
 *
 * a·cos x and a·sin x: x = nπ + r with |r| ≤ π/2, and the sign of a changes if n is odd. π is a sum whose first terms
 * have so few bits that their products with n are exact. Adding 1.5·2^23 (or 1.5·2^52) rounds to a whole number, whose
 * last bits are the last bits of the sum. */
static const float FARTHEST_f32 = 1e4f;
static const double FARTHEST_f64 = 3e6;

INLINE void cos_sin_f32(float x, float a, float *cosine, float *sine) {
    float shifted = x * 0.318309886f + 12582912.0f;
    float n = shifted - 12582912.0f;
    float r = x - n * 3.140625f;
    r = r - n * 9.67502593994140625e-4f;
    r = r - n * 1.50995799098e-7f;
    float u = r * r;
    float s = 2.63463803e-6f * u - 1.98227029e-4f;
    s = s * u + 8.33324186e-3f;
    s = s * u - 1.6666666e-1f;
    float c = -2.62962852e-7f * u + 2.47745265e-5f;
    c = c * u - 1.38886509e-3f;
    c = c * u + 4.16666593e-2f;
    c = c * u - 0.5f;
    float signed_a = from_f32(bits_f32(a) ^ (bits_f32(shifted) << 31));
    *cosine = signed_a * (c * u + 1.0f);
    *sine = signed_a * ((r * u) * s + r);
}

INLINE void cos_sin_f64(double x, double a, double *cosine, double *sine) {
    double shifted = x * 0.31830988618379067 + 6755399441055744.0;
    double n = shifted - 6755399441055744.0;
    double r = x - n * 3.14159265346825122833252;
    r = r - n * 1.21542010126079319531911e-10;
    double u = r * r;
    double s = 2.7313658674940167e-15 * u - 7.6439639659253567e-13;
    s = s * u + 1.6058977114074673e-10;
    s = s * u - 2.505210761393476e-8;
    s = s * u + 2.7557319219139182e-6;
    s = s * u - 1.9841269841254885e-4;
    s = s * u + 8.3333333333333157e-3;
    s = s * u - 1.6666666666666667e-1;
    double c = 4.6275265169654067e-14 * u - 1.146467789230149e-11;
    c = c * u + 2.0876630491582179e-9;
    c = c * u - 2.755731776152069e-7;
    c = c * u + 2.4801587292400647e-5;
    c = c * u - 1.3888888888860541e-3;
    c = c * u + 4.1666666666666333e-2;
    c = c * u - 0.49999999999999999;
    double signed_a = from_f64(bits_f64(a) ^ (bits_f64(shifted) << 63));
    *cosine = signed_a * (c * u + 1.0);
    *sine = signed_a * ((r * u) * s + r);
}

/* e^x − 1 = 2^n (e^r − 1) + (2^n − 1) with |r| ≤ log(2)/2. 2^n is the product of two powers, because it may overflow
 * although e^x is finite. NaN stays NaN. */
INLINE float exp_f32(float x) {
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    float shifted = x * 1.44269504f + 12582912.0f;
    float n = shifted - 12582912.0f;
    int32_t k = (int32_t)(bits_f32(shifted) - bits_f32(12582912.0f)), half = k >> 1;
    float r = x - n * 0.693115234375f;
    r = r - n * 3.19461849453e-5f;
    float q = 1.39269266e-3f * r + 8.36377387e-3f;
    q = q * r + 4.16665501e-2f;
    q = q * r + 1.66665734e-1f;
    q = q * r + 0.5f;
    float p = (r * r) * q + r + 1.0f;
    return p * from_f32((uint32_t)(half + 127) << 23) * from_f32((uint32_t)(k - half + 127) << 23);
}

INLINE double expm1_reduced_f64(double r) {
    double q = 2.510134692835034e-8 * r + 2.7621338669142924e-7;
    q = q * r + 2.7557266418612304e-6;
    q = q * r + 2.4801518641395994e-5;
    q = q * r + 1.9841269864380513e-4;
    q = q * r + 1.3888888918939168e-3;
    q = q * r + 8.3333333333297935e-3;
    q = q * r + 4.1666666666620639e-2;
    q = q * r + 0.16666666666666668;
    q = q * r + 0.5;
    return (r * r) * q + r;
}

INLINE double exp_f64(double x) {
    x = x < -746.0 ? -746.0 : x;
    x = x > 710.0 ? 710.0 : x;
    double shifted = x * 1.4426950408889634 + 6755399441055744.0;
    double n = shifted - 6755399441055744.0;
    int64_t k = (int64_t)(bits_f64(shifted) - bits_f64(6755399441055744.0)), half = k / 2;
    double r = x - n * 0.6931471803691238164901733;
    r = r - n * 1.9082149292705878161e-10;
    double p = expm1_reduced_f64(r) + 1.0;
    return p * from_f64((uint64_t)(half + 1023) << 52) * from_f64((uint64_t)(k - half + 1023) << 52);
}

INLINE double expm1_f64(double x) {
    x = x < -60.0 ? -60.0 : x;
    x = x > 710.0 ? 710.0 : x;
    double shifted = x * 1.4426950408889634 + 6755399441055744.0;
    double n = shifted - 6755399441055744.0;
    int64_t k = (int64_t)(bits_f64(shifted) - bits_f64(6755399441055744.0));
    double r = x - n * 0.6931471803691238164901733;
    r = r - n * 1.9082149292705878161e-10;
    /* 2^(k − 1), because 2^1024 overflows */
    double power = from_f64((uint64_t)(k + 1022) << 52);
    double p = power * expm1_reduced_f64(r);
    double result = (p + (power - 0.5)) * 2.0;
    return result;
}

/* log x of a number above 0: x = 2^k m with √½ ≤ m < √2, and log m = 2 atanh((m − 1)/(m + 1)). */
INLINE float log_f32(float x) {
    float small = x < 1.17549435e-38f ? 16777216.0f : 1.0f;
    uint32_t b = bits_f32(x * small) + (0x3f800000u - 0x3f3504f3u);
    float k = (float)((int32_t)(b >> 23) - 127) - (small > 1.0f ? 24.0f : 0.0f);
    float f = from_f32((b & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    float s = f / (0.5f * f + 1.0f); /* 2(m − 1)/(m + 1) */
    float u = 0.25f * s * s;
    float q = (0.147951587f * u + 0.199942755f) * u + 0.333333428f;
    float y = s * (u * q) + s;
    y = k * 1.42860682031e-6f + y;
    return k * 0.693145751953125f + y;
}

INLINE double log_f64(double x) {
    double small = x < 2.2250738585072014e-308 ? 18014398509481984.0 : 1.0;
    uint64_t b = bits_f64(x * small) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    /* converted to double by its bits, because not every processor has an instruction for 64-bit integers */
    double k = from_f64((b >> 52) | 0x4330000000000000u) - 4503599627370496.0 - 1023.0;
    k = k - (small > 1.0 ? 54.0 : 0.0);
    double f = from_f64((b & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    double s = f / (0.5 * f + 1.0);
    double u = 0.25 * s * s;
    double q = 0.065503606917517457 * u + 0.066337092982374417;
    q = q * u + 0.07693145267329496;
    q = q * u + 0.090908973504488998;
    q = q * u + 0.11111111200273879;
    q = q * u + 0.14285714285382225;
    q = q * u + 0.20000000000000471;
    q = q * u + 0.33333333333333333;
    double y = s * (u * q) + s;
    y = k * 1.9082149292705878161e-10 + y;
    return k * 0.6931471803691238164901733 + y;
}

/* log(1 + x) for x ≥ 0, with a correction for the rounding of 1 + x. */
INLINE float log1p_f32(float x) {
    float sum = 1.0f + x;
    return log_f32(sum) + (sum > 16777216.0f ? 0.0f : (x - (sum - 1.0f)) / sum);
}

INLINE double log1p_f64(double x) {
    double sum = 1.0 + x;
    return log_f64(sum) + (sum > 9007199254740992.0 ? 0.0 : (x - (sum - 1.0)) / sum);
}

#define REAL float
#define OF(name) name##_f32
#define KAFEAT(name) kafeat_##name##_f32
#include "loops.h"
#include "sparse.h"
#include "content.h"
#undef REAL
#undef OF
#undef KAFEAT

#define REAL double
#define OF(name) name##_f64
#define KAFEAT(name) kafeat_##name##_f64
#include "loops.h"
#include "sparse.h"
#include "content.h"

#undef REAL
#undef OF
#undef KAFEAT

#define BYTES 32
#define OF_MACHINES VERSIONS
#include "vectors.h"
#undef BYTES
#undef OF_MACHINES

#if defined(FOR_AVX512)
#define BYTES 64
#define OF_MACHINES FOR_AVX512
#include "vectors.h"
#endif

#include "scalers.h"
#include "casts.h"
