/* The options --json and --json-schema: from a file to a grammar. Must not know: how a grammar works. Read
 * next: generate.c, chat.c. */
#include <weft/data.h>
#include <weft/grammar.h>

#include "cli/cli.h"

#define SCHEMA_MAX ((size_t)16 << 20) /* bytes of a file */

weft_status weft__json_grammar(bool json, const char *schema, weft_grammar **out) {
    weft_bytes file;
    *out = NULL;
    if (!schema) return json ? weft_grammar_json(NULL, out) : WEFT_OK;
    WEFT_TRY(weft_read_file(NULL, schema, SCHEMA_MAX, &file));
    const weft_status status =
        weft_grammar_json_schema(NULL, (const char *)file.data, file.size, schema, out);
    weft_bytes_free(NULL, &file);
    return status;
}

void weft__json_incomplete(const char *command, int64_t tokens) {
    weft__complain(
        "%s: the JSON value was not complete after %lld tokens. Give more with --tokens, or limit the "
        "value in a schema, by maxLength and maxItems",
        command, (long long)tokens);
}
