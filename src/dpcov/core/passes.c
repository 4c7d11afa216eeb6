/* The passes of `passes.py` over a block of rows, a few rows at a time so that these stay in the cache.

   Every operation on a number is the one that numpy does, so the bits are the same (lattice.md, "Compiled passes").
   A block holds one column of the table after another: entry (i, j) at x[i * rows + j] is row j's in column i. */

#include <math.h>
#include <stdint.h>
#include <string.h>

/* So many rows of a few hundred columns fit into a core's own cache. */
#define TILE 64

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
#define FOR_EVERY_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EVERY_PROCESSOR
#endif
#define EXPORTED __attribute__((visibility("default")))

/* The bits of a number without its sign. As integers they are ordered as the magnitudes are; those of infinity
   exceed all finite ones, and those of NaN exceed these. */
static inline int64_t magnitude(double number)
{
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits & INT64_MAX;
}

static inline double power_of_two(int64_t biased_exponent)
{
    int64_t bits = biased_exponent << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Subtract centres, multiply by scales (either may be NULL), and round each row to integers of at most
   2^entry_log2. Rows whose largest entry is below `least`, infinite or NaN become zero. Squared norms are left
   in `squares`, unless that is NULL. */
EXPORTED FOR_EVERY_PROCESSOR void dpcov_round_rows_1(
    double *restrict x, int64_t columns, int64_t rows, const double *restrict centres,
    const double *restrict scales, int64_t entry_log2, double least, int64_t *restrict exponents,
    double *restrict squares)
{
    const int64_t lowest = magnitude(least), infinite = magnitude(INFINITY), one = magnitude(1.0);

    for (int64_t first = 0; first < rows; first += TILE) {
        const int64_t count = rows - first < TILE ? rows - first : TILE;
        int64_t largest[TILE] = {0}, hostile = 0;
        double factor[TILE], sums[TILE] = {0};

        for (int64_t i = 0; i < columns; i++) {
            double *restrict entry = x + i * rows + first;
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
                    x[i * rows + first + j] = 0.0;
            }
        for (int64_t j = 0; j < count; j++) {
            const int64_t biased = largest[j] >> 52;
            factor[j] = power_of_two(2045 + entry_log2 - biased);
            exponents[first + j] = biased - 1022 - entry_log2;
        }
        for (int64_t i = 0; i < columns; i++) {
            double *restrict entry = x + i * rows + first;
            for (int64_t j = 0; j < count; j++) {
                const double rounded = rint(entry[j] * factor[j]);
                entry[j] = rounded;
                sums[j] += rounded * rounded;
            }
        }
        if (squares)
            memcpy(squares + first, sums, (size_t)count * sizeof *sums);
    }
}

/* Multiply each row by its factor, round it, and leave its squared norm. */
EXPORTED FOR_EVERY_PROCESSOR void dpcov_scale_rows_1(
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
