// Rows of a dataset's arrays, converted on their way into the arrays of a batch.
#pragma once

#include <span>

#include "lissome/data.h"

namespace lissome {

// `out`, [rows.size(), ...] of the column's dtype and sample sizes, becomes these rows of its array: cast, then scaled.
void gather_column(const DataColumn& column, std::span<const int64_t> rows, Array& out);
// `out`, of the array's dtype and inner sizes, becomes these rows as they are.
void gather_rows(const Array& array, std::span<const int64_t> rows, Array& out);

}  // namespace lissome
