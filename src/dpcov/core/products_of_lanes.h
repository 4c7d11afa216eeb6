/* Products of integer matrices in vectors of LANES numbers: products.c includes this once for every such kind of
   processor, with TARGET, what the compiler is told of it, and BESIDE, how many columns its registers hold
   beside a group of others. */

#define vector CONCATENATED(vector_, LANES)
#define anywhere CONCATENATED(anywhere_, LANES)
#define apply_map CONCATENATED(apply_map_, LANES)
#define add_products CONCATENATED(add_products_, LANES)
#define add_gram CONCATENATED(add_gram_, LANES)

typedef double vector __attribute__((vector_size(8 * LANES), may_alias));
/* The same, at any place in memory. */
typedef double anywhere __attribute__((vector_size(8 * LANES), aligned(8), may_alias));

/* The images of TILE rows under a lower triangular map: GROUP coordinates at a time, whose coefficients are zero
   before column `begin` of theirs. */
TARGET static void apply_map(const double *restrict coefficients, const int64_t *restrict begin,
                             const double *restrict tile, double *restrict images, int64_t columns,
                             struct rows next)
{
    const int64_t groups = (columns + GROUP - 1) / GROUP;

    for (int64_t group = 0; group < groups; group++) {
        const double *own = coefficients + group * GROUP * columns;
        const int64_t first = group * GROUP, stop = first + GROUP < columns ? first + GROUP : columns;
        bring_near(next, group, groups);
        for (int64_t row = 0; row < TILE; row += 2 * LANES) {
            vector sums[GROUP][2] = {{{0}}};
            for (int64_t k = begin[group]; k < stop; k++) {
                const double *entry = tile + k * TILE + row;
                const vector one = *(const vector *)entry, other = *(const vector *)(entry + LANES);
                for (int i = 0; i < GROUP; i++) {
                    sums[i][0] += own[k * GROUP + i] * one;
                    sums[i][1] += own[k * GROUP + i] * other;
                }
            }
            for (int i = 0; i < GROUP; i++) {
                double *image = images + (first + i) * TILE + row;
                *(vector *)image = sums[i][0];
                *(vector *)(image + LANES) = sums[i][1];
            }
        }
    }
}

/* The products of GROUP columns from i on with BESIDE columns from k on, added up over rows. */
TARGET static inline void add_products(double *restrict total, int64_t columns, const double *const *column,
                                       int64_t i, int64_t k, int64_t rows)
{
    vector sums[GROUP][BESIDE] = {{{0}}};
    int64_t row = 0;
    for (; row + LANES <= rows; row += LANES) {
        vector own[GROUP], other[BESIDE];
        for (int a = 0; a < GROUP; a++)
            own[a] = *(const anywhere *)(column[i + a] + row);
        for (int b = 0; b < BESIDE; b++)
            other[b] = *(const anywhere *)(column[k + b] + row);
        for (int a = 0; a < GROUP; a++)
            for (int b = 0; b < BESIDE; b++)
                sums[a][b] += own[a] * other[b];
    }
    for (int a = 0; a < GROUP; a++)
        for (int b = 0; b < BESIDE; b++) {
            double parts[LANES];
            memcpy(parts, &sums[a][b], sizeof parts);
            for (int half = LANES / 2; half; half /= 2)
                for (int lane = 0; lane < half; lane++)
                    parts[lane] += parts[lane + half];
            for (int64_t rest = row; rest < rows; rest++)
                parts[0] += column[i + a][rest] * column[k + b][rest];
            if (i + a < columns && k + b <= i + a)
                total[(k + b) * columns + i + a] += parts[0];
        }
}

/* The upper triangle of a Gram matrix: of PANEL rows at a time, which stay in the cache, as a BAND of columns and
   one beside it do while their products are added up. */
TARGET static void add_gram(double *restrict total, const double *restrict x, int64_t columns, int64_t rows,
                            int64_t stride)
{
    static const double zeros[PANEL] = {0};
    const double *column[MOST_COLUMNS + GROUP];

    for (int64_t first = 0; first < rows; first += PANEL) {
        const int64_t count = rows - first < PANEL ? rows - first : PANEL;
        for (int64_t i = 0; i < columns + GROUP; i++)
            column[i] = i < columns ? x + i * stride + first : zeros;
        for (int64_t band = 0; band < columns; band += BAND)
            for (int64_t beside = 0; beside <= band; beside += BAND)
                for (int64_t i = band; i < band + BAND && i < columns; i += GROUP)
                    for (int64_t k = beside; k < beside + BAND && k < i + GROUP && k < columns; k += BESIDE)
                        add_products(total, columns, column, i, k, count);
    }
}

#undef vector
#undef anywhere
#undef apply_map
#undef add_products
#undef add_gram
#undef LANES
#undef BESIDE
#undef TARGET
