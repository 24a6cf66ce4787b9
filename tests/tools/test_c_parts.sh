#!/usr/bin/env bash
# tools/c_parts.py finds functions that begin in an #if or in a macro, and counts the fields of structs.
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
PYTHONPATH=tools python3 - <<'END'
import c_parts


def check(what, found, expected):
    found = list(found)
    assert found == expected, f"{what}: {found}, not {expected}"


# The head of the function is in both branches, and so is the end of a block.
check("branches", c_parts.functions("""#if MORE
KERNEL void product(PARAMETERS) {
#else
W_SHARED(x) { int y[2]; };
KERNEL void product(PARAMETERS W_ALSO(x)) {
#endif
    if (a) {
        b();
#ifdef C
    } else {
        c();
    }
#else
    }
#endif
}
void after(void) {
}
"""), [("W_SHARED", 4, 1), ("product", 2, 15), ("after", 17, 2)])
check("a whole function in each branch", c_parts.functions(
    "#if A\nint f(void) {\n    return 1;\n}\n#elif B\nint g(void) { return 2; }\n#endif\nint h(void) { return 3; }\n"),
    [("f", 2, 3), ("g", 6, 1), ("h", 8, 1)])
check("a macro with statements", c_parts.functions(
    "#define LIST(X) \\\n    X(1)\n#define MAKE(name) \\\n    int name(void) { \\\n        return 1; \\\n    }\nMAKE(a)\n"),
    [("MAKE", 3, 4)])
check("comments and strings", c_parts.functions('/* { */\nint f(void) {\n    return "}{"[0]; // {\n}\n'), [("f", 2, 3)])
try:
    list(c_parts.functions("int f(void) {\n"))
    raise SystemExit("braces that do not match were accepted")
except ValueError:
    pass

check("fields", c_parts.structs("""
typedef struct a {
    int x, *y, z[2]; /* 3 */
    void (*f)(int, int); /* 4 */
    struct { int p, q; } pair, other; /* 6 */
    union {
        float r;
        int s;
    }; /* 8 */
} a;
struct b { struct a first; };
"""), [("a", 2, 2), ("a", 2, 2), ("a", 2, 8), ("b", 11, 1)])
END
echo "functions and structs: ok"
