/* The passes of `passes.py` over a block of rows, a few rows at a time so that these stay in the cache.

   Every operation on a number is the one that numpy does, so the bits are the same (lattice.md, "Compiled passes").
   A block holds one column of the table after another: entry (i, j) at x[i * rows + j] is row j's in column i. */

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "products.h"

#if FLT_EVAL_METHOD != 0
#error "numbers would not be rounded to float64 after every operation"
#endif

/* So many rows are read side by side. */
#define SIDE_BY_SIDE 8

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
#define FOR_EVERY_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EVERY_PROCESSOR
#endif
#define EXPORTED __attribute__((visibility("default")))
#define INLINED static inline __attribute__((always_inline))

/* The bits of a number without its sign. As integers they are ordered as the magnitudes are; those of infinity
   exceed all finite ones, and those of NaN exceed these. */
INLINED int64_t magnitude(double number)
{
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits & INT64_MAX;
}

INLINED double power_of_two(int64_t biased_exponent)
{
    int64_t bits = biased_exponent << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Subtract centres, multiply by scales (either may be NULL), and round each of up to TILE rows, whose columns
   are `stride` numbers apart, to integers of at most 2^entry_log2. Rows whose largest entry is below `least`,
   infinite or NaN become zero. Leaves exponents, and squared norms unless `squares` is NULL. */
FOR_EVERY_PROCESSOR static void round_some(
    double *restrict x, int64_t stride, int64_t columns, int64_t count, const double *restrict centres,
    const double *restrict scales, int64_t entry_log2, double least, int64_t *restrict exponents,
    double *restrict squares)
{
    const int64_t lowest = magnitude(least), infinite = magnitude(INFINITY), one = magnitude(1.0);
    int64_t largest[TILE], hostile = 0;
    double factor[TILE], sums[TILE];

    for (int64_t j = 0; j < count; j++) {
        largest[j] = 0;
        sums[j] = 0.0;
    }
    for (int64_t i = 0; i < columns; i++) {
        double *restrict entry = x + i * stride;
        if (centres)
            for (int64_t j = 0; j < count; j++)
                entry[j] -= centres[i];
        if (scales)
            for (int64_t j = 0; j < count; j++)
                entry[j] *= scales[i];
        for (int64_t j = 0; j < count; j++) {
            const int64_t own = magnitude(entry[j]);
            largest[j] = own > largest[j] ? own : largest[j];
        }
    }
    for (int64_t j = 0; j < count; j++)
        hostile |= (largest[j] < lowest) | (largest[j] >= infinite);
    for (int64_t j = 0; hostile && j < count; j++)
        if (largest[j] < lowest || largest[j] >= infinite) {
            largest[j] = one;
            for (int64_t i = 0; i < columns; i++)
                x[i * stride + j] = 0.0;
        }
    for (int64_t j = 0; j < count; j++) {
        const int64_t biased = largest[j] >> 52;
        factor[j] = power_of_two(2045 + entry_log2 - biased);
        exponents[j] = biased - 1022 - entry_log2;
    }
    for (int64_t i = 0; i < columns; i++) {
        double *restrict entry = x + i * stride;
        for (int64_t j = 0; j < count; j++) {
            const double rounded = rint(entry[j] * factor[j]);
            entry[j] = rounded;
            sums[j] += rounded * rounded;
        }
    }
    if (squares)
        memcpy(squares, sums, (size_t)count * sizeof *sums);
}

/* Round the rows of a whole block in place. */
EXPORTED FOR_EVERY_PROCESSOR void dpcov_round_rows_2(
    double *restrict x, int64_t columns, int64_t rows, const double *restrict centres,
    const double *restrict scales, int64_t entry_log2, double least, int64_t *restrict exponents,
    double *restrict squares)
{
    for (int64_t first = 0; first < rows; first += TILE) {
        const int64_t count = rows - first < TILE ? rows - first : TILE;
        round_some(x + first, rows, columns, count, centres, scales, entry_log2, least, exponents + first,
                   squares ? squares + first : NULL);
    }
}

/* At most so many of the rows, from the first on that is asked for. */
INLINED struct rows part_of(struct rows rows, int64_t first, int64_t most)
{
    const int64_t left = rows.count - first;
    rows.first += first * rows.down;
    rows.count = left > most ? most : left > 0 ? left : 0;
    return rows;
}

/* Copy up to TILE numbers: memcpy takes longer for so few. */
INLINED void copy(const double *from, double *restrict to, int64_t count)
{
    for (; count >= SIDE_BY_SIDE; count -= SIDE_BY_SIDE, from += SIDE_BY_SIDE, to += SIDE_BY_SIDE)
        for (int64_t k = 0; k < SIDE_BY_SIDE; k++)
            to[k] = from[k];
    for (int64_t k = 0; k < count; k++)
        to[k] = from[k];
}

/* Copy rows to a tile, where one column of theirs lies after another. */
INLINED void copy_to_tile(struct rows rows, double *restrict tile)
{
    int64_t j = 0;

    if (rows.down == 1) {
        for (int64_t i = 0; i < rows.columns; i++)
            copy(rows.first + rows.across * i, tile + TILE * i, rows.count);
        return;
    }
    for (; j + SIDE_BY_SIDE <= rows.count; j += SIDE_BY_SIDE) {
        const double *entry = rows.first + rows.down * j;
        double *restrict target = tile + j;

        for (int64_t i = 0; i < rows.columns; i++, entry += rows.across, target += TILE)
            for (int64_t k = 0; k < SIDE_BY_SIDE; k++)
                target[k] = entry[rows.down * k];
    }
    for (; j < rows.count; j++)
        for (int64_t i = 0; i < rows.columns; i++)
            tile[TILE * i + j] = rows.first[rows.down * j + rows.across * i];
}

/* Round rows, apply a lower triangular map to them, and round again, a tile at a time. Columns beyond those given are
   1. `scratch` has room for 2 TILE (columns + GROUP) + 8 numbers. */
EXPORTED FOR_EVERY_PROCESSOR void dpcov_map_rows_2(
    const double *source, int64_t down, int64_t across, int64_t given, double *x, int64_t columns, int64_t count,
    const double *restrict centres, const double *restrict scales, int64_t entry_log2, double least,
    const double *restrict coefficients, const int64_t *restrict begin, int64_t image_log2,
    double *restrict scratch, int64_t *restrict exponents, double *restrict squares)
{
    apply_map_function *const apply_map = dpcov_apply_map();
    const struct rows rows = {source, down, across, given, count};
    /* From the beginning of a cache line on. */
    double *const tile = scratch + (-((uintptr_t)scratch / sizeof *scratch) & 7);
    double *const images = tile + TILE * columns;

    for (int64_t first = 0; first < count; first += TILE) {
        const struct rows some = part_of(rows, first, TILE);
        int64_t own[TILE];

        copy_to_tile(some, tile);
        for (int64_t i = given; i < columns; i++)
            for (int64_t j = 0; j < some.count; j++)
                tile[TILE * i + j] = 1.0;
        round_some(tile, TILE, columns, some.count, centres, scales, entry_log2, least, own, NULL);
        apply_map(coefficients, begin, tile, images, columns, part_of(rows, first + TILE, TILE));
        round_some(images, TILE, columns, some.count, NULL, NULL, image_log2, 1.0, exponents + first,
                   squares + first);
        for (int64_t j = 0; j < some.count; j++)
            exponents[first + j] += own[j];
        for (int64_t i = 0; i < columns; i++)
            copy(images + TILE * i, x + count * i + first, some.count);
    }
}

/* Multiply each row by its factor, round it, and leave its squared norm. */
EXPORTED FOR_EVERY_PROCESSOR void dpcov_scale_rows_2(
    double *restrict x, int64_t columns, int64_t rows, const double *restrict factors, double *restrict squares)
{
    for (int64_t first = 0; first < rows; first += TILE) {
        const int64_t count = rows - first < TILE ? rows - first : TILE;
        double sums[TILE] = {0};

        for (int64_t i = 0; i < columns; i++) {
            double *restrict entry = x + i * rows + first;
            for (int64_t j = 0; j < count; j++) {
                const double rounded = rint(entry[j] * factors[first + j]);
                entry[j] = rounded;
                sums[j] += rounded * rounded;
            }
        }
        memcpy(squares + first, sums, (size_t)count * sizeof *sums);
    }
}
