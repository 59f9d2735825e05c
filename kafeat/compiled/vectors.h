/* Loops of vectors of BYTES bytes, for both precisions. */
#define NAME_(name, bytes, suffix) name##_##bytes##_##suffix
#define NAME(name, bytes, suffix) NAME_(name, bytes, suffix)

#define REAL float
#define WORD int32_t
#define LARGEST_WORD INT32_MAX
#define OF(name) NAME(name, BYTES, f32)
#define KAFEAT(name) NAME(kafeat_##name, BYTES, f32)
#define SIZE_OF size_f32
#define FARTHEST FARTHEST_f32
#define COS_SIN cos_sin_f32
#define PAIRS pairs_f32
#include "lanes.h"
#include "sketch.h"
#include "hadamard.h"
#include "products.h"
#include "terms.h"
#include "trees.h"
#if BYTES == 64 /* with the smaller vectors, it was no faster than BLAS followed by a loop */
#include "waves.h"
#endif
#undef REAL
#undef WORD
#undef LARGEST_WORD
#undef OF
#undef KAFEAT
#undef SIZE_OF
#undef FARTHEST
#undef COS_SIN
#undef PAIRS

#define REAL double
#define WORD int64_t
#define LARGEST_WORD INT64_MAX
#define OF(name) NAME(name, BYTES, f64)
#define KAFEAT(name) NAME(kafeat_##name, BYTES, f64)
#define SIZE_OF size_f64
#define FARTHEST FARTHEST_f64
#define COS_SIN cos_sin_f64
#define PAIRS pairs_f64
#include "lanes.h"
#include "sketch.h"
#include "hadamard.h"
#include "products.h"
#include "terms.h"
#include "trees.h"
#if BYTES == 64 /* with the smaller vectors, it was no faster than BLAS followed by a loop */
#include "waves.h"
#endif
#undef REAL
#undef WORD
#undef LARGEST_WORD
#undef OF
#undef KAFEAT
#undef SIZE_OF
#undef FARTHEST
#undef COS_SIN
#undef PAIRS
#undef NAME
#undef NAME_
