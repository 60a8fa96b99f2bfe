// Where measurements of this machine are kept between runs.
#pragma once

#include <string>

namespace lissome {

// LISSOME_CACHE or set_cache_folder(), else `lissome` in the user's cache folder; made when it is absent. Empty when it
// is switched off ("none") or cannot be made: then nothing is kept.
std::string cache_folder();
// For `--cache`; wins over the environment.
void set_cache_folder(std::string path);

}  // namespace lissome
