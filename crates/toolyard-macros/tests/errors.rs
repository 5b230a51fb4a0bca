//! What people get wrong with `#[tool]` and `tool_fn`, and what the compiler says to it: each message says what to write
//! instead (KT-2). The messages are in the files beside the programs; `TRYBUILD=overwrite` writes them anew.

/// KT-2: the errors, as whoever makes them sees them. It compiles the engine for itself, which takes a minute.
#[test]
#[ignore = "compiles the engine once more: CI runs it"]
fn errors_say_what_to_write() {
    trybuild::TestCases::new().compile_fail("tests/errors/*.rs");
}
