//! Tests of redaction.

mod patterns;
mod secrets;
mod streams;
