/* A program of somebody else's: nothing but the installed headers and the installed library. */
#include <stdio.h>
#include <string.h>
#include <weft/base.h>

int main(void) {
    char headers[32];
    snprintf(headers, sizeof headers, "%d.%d.%d", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH);
    printf("weft %s\n", weft_version());
    return strcmp(headers, weft_version()) != 0 || weft_last_error(NULL)[0] != '\0';
}
