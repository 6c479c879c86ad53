/* The dashboard's page, which is a part of the program. Private to pkg/controller and its tests. */
#ifndef FAASRL_CONTROLLER_PAGE_H
#define FAASRL_CONTROLLER_PAGE_H

#include "base/base.h"

const char *page_html(size_t *len);
/* What a browser may do with it: run its own script, wear its own style, ask its own server. By the
 * hashes of what stands between <script> and </script>, and <style> and </style>. free() it. */
char *page_policy(const char *html);

#endif
