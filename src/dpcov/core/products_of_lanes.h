/* Products of integer matrices in vectors of LANES numbers: products.c includes this once for every such kind of
   processor, with TARGET, what the compiler is told of it, BESIDE, how many columns its registers hold beside a
   group of others, and ADD_PAIRS, its products of short integers, added up in pairs. */

#define vector CONCATENATED(vector_, LANES)
#define anywhere CONCATENATED(anywhere_, LANES)
#define apply_map CONCATENATED(apply_map_, LANES)
#define add_products CONCATENATED(add_products_, LANES)
#define add_gram CONCATENATED(add_gram_, LANES)
#define shorts CONCATENATED(shorts_, LANES)
#define pairs CONCATENATED(pairs_, LANES)
#define add_short_products CONCATENATED(add_short_products_, LANES)
#define add_short_gram CONCATENATED(add_short_gram_, LANES)

typedef double vector __attribute__((vector_size(8 * LANES), may_alias));
/* The same, at any place in memory. */
typedef double anywhere __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
/* As many bytes of short integers, and of the sums of pairs of their products. */
typedef int16_t shorts __attribute__((vector_size(8 * LANES), may_alias));
typedef int32_t pairs __attribute__((vector_size(8 * LANES), may_alias));

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
        for (int64_t row = 0; row < TILE; row += BESIDE * LANES) {
            vector sums[GROUP][BESIDE] = {{{0}}};
            for (int64_t k = begin[group]; k < stop; k++) {
                const vector *entry = (const vector *)(tile + k * TILE + row);
                for (int i = 0; i < GROUP; i++)
                    for (int b = 0; b < BESIDE; b++)
                        sums[i][b] += own[k * GROUP + i] * entry[b];
            }
            for (int i = 0; i < GROUP; i++)
                for (int b = 0; b < BESIDE; b++)
                    ((vector *)(images + (first + i) * TILE + row))[b] = sums[i][b];
        }
    }
}

/* The products of GROUP columns from i on with BESIDE columns from k on, added up over rows. For columns beyond the
   last, one that is there is read, and its products are left. */
TARGET static inline void add_products(double *restrict total, const double *restrict x, int64_t columns,
                                       int64_t stride, int64_t i, int64_t k, int64_t rows)
{
    const double *first[GROUP], *second[BESIDE];
    for (int a = 0; a < GROUP; a++)
        first[a] = x + (i + a < columns ? i + a : i) * stride;
    for (int b = 0; b < BESIDE; b++)
        second[b] = x + (k + b < columns ? k + b : k) * stride;
    vector sums[GROUP][BESIDE] = {{{0}}};
    int64_t row = 0;
    for (; row + LANES <= rows; row += LANES) {
        vector own[GROUP], other[BESIDE];
        for (int a = 0; a < GROUP; a++)
            own[a] = *(const anywhere *)(first[a] + row);
        for (int b = 0; b < BESIDE; b++)
            other[b] = *(const anywhere *)(second[b] + row);
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
                parts[0] += first[a][rest] * second[b][rest];
            if (i + a < columns && k + b <= i + a)
                total[(k + b) * columns + i + a] += parts[0];
        }
}

/* The upper triangle of a Gram matrix: of PANEL rows at a time, which stay in the cache, as a BAND of columns and
   one beside it do while their products are added up. */
TARGET static void add_gram(double *restrict total, const double *restrict x, int64_t columns, int64_t rows,
                            int64_t stride)
{
    for (int64_t first = 0; first < rows; first += PANEL) {
        const int64_t count = rows - first < PANEL ? rows - first : PANEL;
        for (int64_t band = 0; band < columns; band += BAND)
            for (int64_t beside = 0; beside <= band; beside += BAND)
                for (int64_t i = band; i < band + BAND && i < columns; i += GROUP)
                    for (int64_t k = beside; k < beside + BAND && k < i + GROUP && k < columns; k += BESIDE)
                        add_products(total, x + first, columns, stride, i, k, count);
    }
}

/* The same of short integers, SHORT_PANEL rows of a column one after another. A sum in 32 bits is one of
   SHORT_PANEL / (2 LANES) rows at most: of 128, whose products are at most 4095^2 each. */
TARGET static inline void add_short_products(double *restrict total, int64_t columns,
                                             const int16_t *restrict panel, int64_t i, int64_t k, int64_t rows)
{
    pairs sums[GROUP][BESIDE] = {{{0}}};
    for (int64_t row = 0; row < rows; row += 4 * LANES) {
        shorts own[GROUP], other[BESIDE];
        for (int a = 0; a < GROUP; a++)
            own[a] = *(const shorts *)(panel + (i + a) * SHORT_PANEL + row);
        for (int b = 0; b < BESIDE; b++)
            other[b] = *(const shorts *)(panel + (k + b) * SHORT_PANEL + row);
        for (int a = 0; a < GROUP; a++)
            for (int b = 0; b < BESIDE; b++)
                sums[a][b] += ADD_PAIRS(own[a], other[b]);
    }
    for (int a = 0; a < GROUP; a++)
        for (int b = 0; b < BESIDE; b++) {
            int64_t sum = 0;
            for (int lane = 0; lane < 2 * LANES; lane++)
                sum += sums[a][b][lane];
            if (i + a < columns && k + b <= i + a)
                total[(k + b) * columns + i + a] += (double)sum;
        }
}

/* The same of rows that are no longer than 4095: as short integers, which `panel` has room for. */
TARGET static void add_short_gram(double *restrict total, const double *restrict x, int64_t columns, int64_t rows,
                                  int64_t stride, int16_t *restrict panel)
{
    /* Products with columns beyond the last are left. */
    memset(panel + columns * SHORT_PANEL, 0, GROUP * SHORT_PANEL * sizeof *panel);
    for (int64_t first = 0; first < rows; first += SHORT_PANEL) {
        const int64_t count = rows - first < SHORT_PANEL ? rows - first : SHORT_PANEL;
        const int64_t padded = (count + 4 * LANES - 1) / (4 * LANES) * (4 * LANES);
        for (int64_t i = 0; i < columns; i++) {
            const double *restrict column = x + i * stride + first;
            int16_t *restrict target = panel + i * SHORT_PANEL;
            for (int64_t row = 0; row < count; row++)
                target[row] = (int16_t)(int32_t)column[row];
            memset(target + count, 0, (size_t)(padded - count) * sizeof *panel);
        }
        for (int64_t band = 0; band < columns; band += BAND)
            for (int64_t beside = 0; beside <= band; beside += BAND)
                for (int64_t i = band; i < band + BAND && i < columns; i += GROUP)
                    for (int64_t k = beside; k < beside + BAND && k < i + GROUP && k < columns; k += BESIDE)
                        add_short_products(total, columns, panel, i, k, padded);
    }
}

#undef vector
#undef anywhere
#undef apply_map
#undef add_products
#undef add_gram
#undef shorts
#undef pairs
#undef add_short_products
#undef add_short_gram
#undef LANES
#undef BESIDE
#undef ADD_PAIRS
#undef TARGET
