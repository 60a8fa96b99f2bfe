// Renders measurements as a page of numbers, curves and tables: one offline HTML document without scripts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lissome/measure.h"

namespace lissome {

struct PageTile {
  std::string name, value, detail;
};

// At most three curves over the same x, the first on top, all in the same unit ("s", "B", "%", "" plain).
struct PageChart {
  std::string title, hint;
  std::vector<Series> series;
};

struct ReportPage {
  std::string title;   // title of the document
  std::string answer;  // first line of the page
  std::vector<PageTile> tiles;
  std::vector<PageChart> charts;
  std::vector<std::string> notes;
  std::vector<Table> tables;                               // of a long table the last rows are shown
  std::vector<std::pair<std::string, std::string>> facts;  // name, text
  std::string command;                                     // command that repeats the work
};

std::string render_page(const ReportPage& page);

}  // namespace lissome
