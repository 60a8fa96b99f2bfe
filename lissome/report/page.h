// A page of figures, curves and tables for whatever was measured: one offline HTML document without scripts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lissome/measure.h"

namespace lissome {

struct PageTile {
  std::string name, value, detail;
};

// At most three curves over one x, the first on top, with one unit for all of them ("s", "B", "%", "" plain).
struct PageChart {
  std::string title, hint;
  std::vector<Series> series;
};

struct ReportPage {
  std::string title;   // of the document
  std::string answer;  // the first line
  std::vector<PageTile> tiles;
  std::vector<PageChart> charts;
  std::vector<std::string> notes;
  std::vector<Table> tables;                               // the last rows of long ones
  std::vector<std::pair<std::string, std::string>> facts;  // name, text
  std::string command;                                     // how to run it again
};

std::string render_page(const ReportPage& page);

}  // namespace lissome
