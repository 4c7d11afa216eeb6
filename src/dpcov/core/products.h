/* What passes.c uses of products.c. */

#include <stdint.h>

/* Rows that are mapped together: so many of a few hundred columns fit into a core's own cache. */
#define TILE 64
/* Coordinates, or columns, whose sums are added up together. */
#define GROUP 4

/* Rows in memory: `down` numbers from one to the next, `across` from a column to the next. */
struct rows {
    const double *first;
    int64_t down, across, columns, count;
};

/* Leaves the images of a tile under a map, and brings the rows that are read next to the cache. */
typedef void apply_map_function(const double *coefficients, const int64_t *begin, const double *tile, double *images,
                                int64_t columns, struct rows next);

/* Return what applies a map fastest on this processor; NULL where maps of no columns are compiled. */
apply_map_function *dpcov_apply_map(void);
