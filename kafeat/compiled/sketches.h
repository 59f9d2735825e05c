/* sketch.h for both precisions, with vectors of BYTES bytes. */
#define NAME_(name, bytes, suffix) name##_##bytes##_##suffix
#define NAME(name, bytes, suffix) NAME_(name, bytes, suffix)

#define REAL float
#define OF(name) NAME(name, BYTES, f32)
#define KAFEAT(name) NAME(kafeat_##name, BYTES, f32)
#include "sketch.h"
#undef REAL
#undef OF
#undef KAFEAT

#define REAL double
#define OF(name) NAME(name, BYTES, f64)
#define KAFEAT(name) NAME(kafeat_##name, BYTES, f64)
#include "sketch.h"
#undef REAL
#undef OF
#undef KAFEAT
#undef NAME
#undef NAME_
