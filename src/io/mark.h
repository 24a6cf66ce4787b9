/* Which folders are Weft's own. A folder that Weft makes gets a mark first: the file .weft, with the line
 * "weft KIND 1", such as "weft run 1". In a folder without it, nothing is replaced or removed. Must not know:
 * what the folders hold. Read next: mark.c. */
#ifndef WEFT_SRC_IO_MARK_H
#define WEFT_SRC_IO_MARK_H

#include "base/base.h"

#define WEFT__MARK_FILE   ".weft"
#define WEFT__MARK_FORMAT 1

/* Returns whether a folder has a mark of the kind, whatever its format. */
bool weft__marked(const char *folder, const char *kind);
/* Marks a folder, unless it is marked as such already. */
weft_status weft__mark(weft_context *ctx, const char *folder, const char *kind);

#define WEFT__ENTRY_NAME 256
/* Finds a file in a folder that is not Weft's: no mark, no temporary file, and `known` (NULL: none) does not
 * accept its name. *found is "" if there is none, or no such folder. */
weft_status weft__find_foreign(weft_context *ctx, const char *folder, bool (*known)(const char *name),
                               char found[WEFT__ENTRY_NAME]);

#endif
