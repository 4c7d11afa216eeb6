/* Products of integer matrices, whose partial sums stay below 2^53: they are exact in any order, whether a product
   is fused with a sum or not (lattice.md, "Compiled products"). So they are added up in vectors, as is fastest.

   A block holds one column of the table after another, as in passes.c. Coefficients come in groups of coordinates:
   the first of all columns, the coordinates of the group one after another, then the next. */

#include <string.h>

#include "products.h"

#define EXPORTED __attribute__((visibility("default")))
/* A cache holds so many columns of so many rows, and as many columns beside them... */
#define BAND 64
#define PANEL 512
/* ... and so many rows of short integers. */
#define SHORT_PANEL 1024

/* On Windows, some compilers do not align what a function keeps as vectors need it. */
#if defined(__GNUC__) && defined(__x86_64__) && !defined(_WIN32)
#include <immintrin.h>

/* Bring one of so many parts of the rows to the cache, while there is other work to do. Inlined always: some compilers
   leave out calls of functions that do nothing else. */
static inline __attribute__((always_inline)) void bring_near(struct rows rows, int64_t part, int64_t parts)
{
    const int64_t pieces = rows.down == 1 ? rows.columns : rows.count;
    const int64_t apart = rows.down == 1 ? rows.across : rows.down;
    const int64_t numbers = rows.down == 1 ? rows.count : rows.across == 1 ? rows.columns : 0;

    for (int64_t piece = part * pieces / parts; piece < (part + 1) * pieces / parts; piece++)
        for (int64_t at = 0; at < numbers; at += 8)
            __builtin_prefetch(rows.first + piece * apart + at, 0, 2);
}

#define JOINED(name, number) name##number
#define CONCATENATED(name, number) JOINED(name, number)

#define LANES 8
#define BESIDE 4
#define TARGET __attribute__((target("avx512f,avx512bw")))
#define ADD_PAIRS(one, other) (pairs)_mm512_madd_epi16((__m512i)(one), (__m512i)(other))
#include "products_of_lanes.h"

#define LANES 4
#define BESIDE 2
#define TARGET __attribute__((target("avx2,fma")))
#define ADD_PAIRS(one, other) (pairs)_mm256_madd_epi16((__m256i)(one), (__m256i)(other))
#include "products_of_lanes.h"

static int lanes(void)
{
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
        return 8;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 4 : 0;
}

/* Up to how many columns maps, Gram matrices and those of short integers take no longer than with a good BLAS
   (docs/scale.md); none where it was not measured. */
static const int64_t *most_columns(void)
{
    static const int64_t measured[][3] = {{0, 0, 0}, {512, 32, 4096}, {4096, 4096, 4096}};
    return measured[lanes() / 4];
}

apply_map_function *dpcov_apply_map(void)
{
    return lanes() == 8 ? apply_map_8 : lanes() == 4 ? apply_map_4 : 0;
}

/* Add the Gram matrix of a block, whose columns are `stride` numbers apart, to the upper triangle of `total`. */
EXPORTED void dpcov_add_gram_2(double *total, const double *x, int64_t columns, int64_t rows, int64_t stride)
{
    if (lanes() == 8)
        add_gram_8(total, x, columns, rows, stride);
    else if (lanes() == 4)
        add_gram_4(total, x, columns, rows, stride);
}

/* The same of integer rows that are no longer than 4095. There is room for SHORT_PANEL (columns + GROUP) + 32 short
   integers. */
EXPORTED void dpcov_add_short_gram_2(double *total, const double *x, int64_t columns, int64_t rows, int64_t stride,
                                     int16_t *room)
{
    /* From the beginning of a cache line on. */
    int16_t *const panel = room + (-((uintptr_t)room / sizeof *room) & 31);
    if (lanes() == 8)
        add_short_gram_8(total, x, columns, rows, stride, panel);
    else if (lanes() == 4)
        add_short_gram_4(total, x, columns, rows, stride, panel);
}

#else

static const int64_t *most_columns(void)
{
    static const int64_t none[3] = {0};
    return none;
}

apply_map_function *dpcov_apply_map(void)
{
    return 0;
}

EXPORTED void dpcov_add_gram_2(double *total, const double *x, int64_t columns, int64_t rows, int64_t stride)
{
    (void)total, (void)x, (void)columns, (void)rows, (void)stride;
}

EXPORTED void dpcov_add_short_gram_2(double *total, const double *x, int64_t columns, int64_t rows, int64_t stride,
                                     int16_t *room)
{
    (void)total, (void)x, (void)columns, (void)rows, (void)stride, (void)room;
}

#endif

/* What the caller has to know: the constants, and `most_columns`. */
EXPORTED void dpcov_sizes_2(int64_t *sizes)
{
    const int64_t constants[] = {TILE, GROUP, SHORT_PANEL};
    memcpy(sizes, constants, sizeof constants);
    memcpy(sizes + 3, most_columns(), 3 * sizeof *sizes);
}
