//! What a function has to be to become a tool, and its doc comment.

use syn::{Attribute, Error, Expr, ExprLit, Lit, Meta, Result, ReturnType, Safety, Signature, Type};

/// Passes if a function of this signature can be a tool.
pub(crate) fn check(signature: &Signature) -> Result<()> {
    let name = &signature.ident;
    if signature.asyncness.is_none() {
        let message =
            "a tool is an `async fn`; if it blocks its thread, it is one with `blocking` in the attribute";
        return Err(Error::new(signature.fn_token.span, message));
    }
    if let Some(parameter) = signature.generics.params.first() {
        let message = "a tool has no type parameters or lifetimes: take owned types such as `String`, and `State<T>` for \
                       what is shared";
        return Err(Error::new_spanned(parameter, message));
    }
    match () {
        () if matches!(signature.safety, Safety::Unsafe(_)) => {
            Err(Error::new(name.span(), "a tool cannot be an `unsafe fn`"))
        }
        () if signature.abi.is_some() => Err(Error::new(name.span(), "a tool cannot be an `extern fn`")),
        () if signature.variadic.is_some() => Err(Error::new(name.span(), "a tool cannot be variadic")),
        () => Ok(()),
    }
}

/// Whether a function returns a `Result`, by the name of the type.
pub(crate) fn returns_result(output: &ReturnType) -> bool {
    match output {
        ReturnType::Type(_, kind) => last_name(kind).is_some_and(|name| name.ends_with("Result")),
        ReturnType::Default => false,
    }
}

/// The last name in the path of a type.
pub(crate) fn last_name(kind: &Type) -> Option<String> {
    match kind {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}

/// The text of a doc comment, as the model reads it; `None` if there is none.
pub(crate) fn documented(attributes: &[Attribute]) -> Option<String> {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<_> =
        lines.map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned()).collect();
    (!lines.is_empty()).then(|| lines.join("\n").trim().to_owned())
}
