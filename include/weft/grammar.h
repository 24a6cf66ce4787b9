/* Grammars: which texts a language model may generate. A grammar comes from a JSON schema, or allows all of
 * JSON. Pass it to weft_generate or weft_run_generate as `grammar` of weft_generate_options. Each token is
 * then chosen among those that a valid text can continue with.
 *
 *     weft_grammar *grammar;
 *     const char *schema = "{\"type\": \"object\", \"properties\": {\"age\": {\"type\": \"integer\"}}}";
 *     weft_status status = weft_grammar_json_schema(ctx, schema, strlen(schema), "person", &grammar);
 *
 * The context of each function may be NULL. It serves only memory and errors. A grammar does not change, so
 * several threads may use it. Free it before its context. */
#ifndef WEFT_GRAMMAR_H
#define WEFT_GRAMMAR_H

#include <weft/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_grammar weft_grammar;

/* Makes the grammar of all JSON objects and arrays. */
WEFT_API WEFT_CHECKED weft_status weft_grammar_json(weft_context *ctx, weft_grammar **out);

/* Makes the grammar of the JSON values that a schema of `bytes` bytes allows. `name` stands in messages, such
 * as the path of the file. docs/published.md lists the keywords that Weft knows, and how the values are
 * written.
 *
 * WEFT_ERR_FORMAT: the schema is malformed, has a keyword that Weft does not know, or allows no value. The
 * message names the place in the schema and the keyword. */
WEFT_API WEFT_CHECKED weft_status weft_grammar_json_schema(weft_context *ctx, const char *schema,
                                                           size_t bytes, const char *name,
                                                           weft_grammar **out);

/* NULL is allowed. */
WEFT_API void weft_grammar_free(weft_grammar *grammar);

#ifdef __cplusplus
}
#endif
#endif
