#include "lissome/report/html_parts.h"

#include <algorithm>
#include <cstdio>

#include "lissome/report/clean_text.h"
#include "lissome/report/style.h"

namespace lissome {
namespace {

std::string clip(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t cut = most;
  while (cut > 0 && (text[cut] & 0xc0) == 0x80) --cut;
  return text.substr(0, cut) + "\xE2\x80\xA6";
}

}  // namespace

std::string escape_html(const std::string& text, size_t most) {
  std::string escaped;
  for (char c : clip(clean_text(text), most)) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

std::string print_number(double number, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

std::string make_bar(const std::string& kind, double value, double largest, const std::string& label) {
  const double share = largest > 0 ? value / largest : 0;
  return "<div class=\"bar " + kind + "\"><span style=\"--share:" + print_number(std::max(share, 0.004), 3) +
         "\"></span><b>" + label + "</b></div>\n";
}

std::string make_tile(const std::string& name, const std::string& now, const std::string& was, bool lead) {
  return std::string("<div class=\"tile") + (lead ? " lead" : "") + "\"><h3>" + name + "</h3><p class=\"now\">" + now +
         "</p><p class=\"was\">" + was + "</p></div>\n";
}

std::string make_page(const std::string& title, const std::string& answer, const std::string& body) {
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>lissome: " +
         escape_html(title) + "</title>\n<style>" + std::string(kReportStyle) + "</style></head>\n<body><main>\n" +
         "<header><p class=\"brand\">lissome</p><h1>" + escape_html(answer, 600) + "</h1></header>\n" + body +
         "</main></body></html>\n";
}

}  // namespace lissome
