/* Casts from one number type to another. Each returns true if a result is not finite. A matrix has `outer` runs of
 * `inner` numbers. Strides are in bytes, because the numbers need not be contiguous. Integers are rounded to double
 * first, so that all file formats give the same floats. */

/* The bits of the float16 nearest to x, with ties to even, for finite x. Below 2^-14, neighbouring float16 numbers are
 * 2^-24 apart, like floats above 1/2 and doubles above 2^28, so adding 1/2 or 2^28 makes the processor round. */
INLINE uint16_t half_f32(float x) {
    uint32_t bits = bits_f32(x), size = bits & 0x7fffffffu;
    uint32_t normal = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
    uint32_t small = bits_f32(size_f32(x) + 0.5f) - 0x3f000000u;
    return (uint16_t)((size < 0x38800000u ? small : normal) | (bits >> 16 & 0x8000u));
}

INLINE uint16_t half_f64(double x) {
    uint64_t bits = bits_f64(x), size = bits & 0x7fffffffffffffffu;
    uint64_t normal = (size - 0x3f00000000000000u + 0x1ffffffffffu + (size >> 42 & 1u)) >> 42;
    uint64_t small = bits_f64(size_f64(x) + 268435456.0) - 0x41b0000000000000u;
    return (uint16_t)((size < 0x3f10000000000000u ? small : normal) | (bits >> 48 & 0x8000u));
}

#define FITS_f32(x) (size_f32(x) <= LARGEST_f32)
#define FITS_f64(x) (size_f64(x) <= LARGEST_f64)
#define RUNS ptrdiff_t outer, ptrdiff_t inner, ptrdiff_t by_outer, ptrdiff_t by_inner

#define CAST(name, FROM, TO, CONVERT, LOST) \
    INLINE int name##_runs(const char *x, RUNS, char *out, ptrdiff_t to_outer, ptrdiff_t to_inner) { \
        int lost = 0; \
        for (ptrdiff_t i = 0; i < outer; i++) \
            for (ptrdiff_t j = 0; j < inner; j++) { \
                FROM value = *(const FROM *)(x + i * by_outer + j * by_inner); \
                TO made = CONVERT(value); \
                *(TO *)(out + i * to_outer + j * to_inner) = made; \
                lost |= LOST; \
            } \
        return lost; \
    } \
    VERSIONS int kafeat_##name(const char *x, RUNS, char *out, ptrdiff_t to_outer, ptrdiff_t to_inner) { \
        if (by_inner == sizeof(FROM) && to_inner == sizeof(TO)) \
            return name##_runs(x, outer, inner, by_outer, sizeof(FROM), out, to_outer, sizeof(TO)); \
        return name##_runs(x, outer, inner, by_outer, by_inner, out, to_outer, to_inner); \
    }

#define SINGLE(x) ((float)(x))
#define DOUBLE(x) ((double)(x))
#define SINGLE_OF_WHOLE(x) ((float)(double)(x))

/* 65,520 is the smallest number that float16 rounds to infinity: its largest finite number is 65,504. */
CAST(cast_f32_f16, float, uint16_t, half_f32, !(size_f32(value) < 65520.0f))
CAST(cast_f64_f16, double, uint16_t, half_f64, !(size_f64(value) < 65520.0))
CAST(cast_f64_f32, double, float, SINGLE, !FITS_f32(made))
CAST(cast_f32_f64, float, double, DOUBLE, !FITS_f64(made))
#define WHOLE(kind, FROM) \
    CAST(cast_##kind##_f32, FROM, float, SINGLE_OF_WHOLE, 0) \
    CAST(cast_##kind##_f64, FROM, double, DOUBLE, 0)
WHOLE(i8, int8_t)
WHOLE(i16, int16_t)
WHOLE(i32, int32_t)
WHOLE(i64, int64_t)
WHOLE(u8, uint8_t)
WHOLE(u16, uint16_t)
WHOLE(u32, uint32_t)
WHOLE(u64, uint64_t)
/* A file may use any byte except 0 for true. */
#define TRUTH(x) ((x) != 0)
CAST(cast_b8_f32, uint8_t, float, TRUTH, 0)
CAST(cast_b8_f64, uint8_t, double, TRUTH, 0)

/* A check function returns true if a number is not finite. */
#define CHECK(kind, FROM) \
    INLINE int check_##kind##_runs(const char *x, RUNS) { \
        int lost = 0; \
        for (ptrdiff_t i = 0; i < outer; i++) \
            for (ptrdiff_t j = 0; j < inner; j++) lost |= !FITS_##kind(*(const FROM *)(x + i * by_outer + j * by_inner)); \
        return lost; \
    } \
    VERSIONS int kafeat_check_##kind(const char *x, RUNS) { \
        return by_inner == sizeof(FROM) ? check_##kind##_runs(x, outer, inner, by_outer, sizeof(FROM)) \
                                        : check_##kind##_runs(x, outer, inner, by_outer, by_inner); \
    }
CHECK(f32, float)
CHECK(f64, double)
