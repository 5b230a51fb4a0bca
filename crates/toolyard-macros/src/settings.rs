//! The settings in the attribute, as calls of the methods of `ToolSpec`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{
    Error, Expr, ExprLit, Ident, Lit, LitStr, Result, Token, parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
    spanned::Spanned as _,
};

/// What a call can do.
const EFFECTS: &[&str] = &["pure", "read", "write", "network", "execute"];

/// Methods without an argument.
const FLAGS: &[&str] = &[
    "blocking",
    "concurrent",
    "hidden_from_sub_agents",
    "idempotent",
    "inline",
    "recursive",
    "without_capability",
];

/// Methods with a time.
const TIMES: &[&str] = &["timeout", "timeout_grace"];

/// Methods with any other value.
const VALUES: &[&str] = &[
    "approval_ignores",
    "asked_as",
    "backend",
    "breaker",
    "budget",
    "cost",
    "hidden_from_role",
    "key",
    "key_conflict",
    "limit_scope",
    "max_concurrency",
    "rate",
    "requires_net",
    "retry",
    "serial_scope",
    "version",
];

/// Methods with several arguments.
const LISTS: &[&str] = &["requires_fs"];

/// Methods that add to what an earlier one has set.
const ADDS: &[&str] = &["approval_ignores", "hidden_from_role", "requires_fs", "requires_net"];

/// What replaces the function's own words.
const WORDS: &[&str] = &["name", "description"];

/// The settings of a tool.
pub(crate) struct Settings {
    effect: Ident,
    name: Option<LitStr>,
    description: Option<LitStr>,
    /// Each as `.method(value)`.
    methods: TokenStream,
}

impl Settings {
    /// The expression of the tool's spec, for a function of this name and with this doc comment.
    pub(crate) fn spec(&self, function: &Ident, documented: Option<&str>) -> Result<TokenStream> {
        let Self { effect, name, description, methods } = self;
        let name = name.as_ref().map_or_else(|| unraw(function), LitStr::value);
        let description = description.as_ref().map(LitStr::value).or_else(|| documented.map(str::to_owned));
        let Some(description) = description.filter(|description| !description.trim().is_empty()) else {
            let message = "say what the tool does, in a doc comment above it or with `description = \"…\"`: that is what the \
                           model reads to choose it";
            return Err(Error::new(function.span(), message));
        };
        Ok(quote! { ::toolyard::ToolSpec::#effect(#name).describe(#description) #methods })
    }
}

/// The name without `r#`.
pub(crate) fn unraw(name: &Ident) -> String {
    let name = name.to_string();
    name.strip_prefix("r#").map(str::to_owned).unwrap_or(name)
}

impl Parse for Settings {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (mut effect, mut methods, mut seen) = (None::<Ident>, TokenStream::new(), Vec::<String>::new());
        let (mut name, mut description) = (None, None);
        while !input.is_empty() {
            let key: Ident = input.call(syn::ext::IdentExt::parse_any)?;
            let word = key.to_string();
            if seen.contains(&word) && !ADDS.contains(&word.as_str()) {
                return Err(Error::new(key.span(), format!("`{word}` is set twice: remove one of them")));
            }
            match word.as_str() {
                word if EFFECTS.contains(&word) => match &effect {
                    None => effect = Some(key),
                    Some(first) => {
                        let message =
                            format!("the tool is `{first}` and `{word}`: keep the worst that a call can do");
                        return Err(Error::new(key.span(), message));
                    }
                },
                "name" => name = Some(text(input, &key)?),
                "description" => description = Some(text(input, &key)?),
                _ => methods.extend(method(input, &key, &word)?),
            }
            seen.push(word);
            if !input.is_empty() {
                input
                    .parse::<Token![,]>()
                    .map_err(|error| Error::new(error.span(), "put a comma between settings"))?;
            }
        }
        let effect = effect.ok_or_else(|| {
            let message = "say what a call can do: `#[tool(pure)]` nothing outside its arguments, `#[tool(read)]`, \
                           `#[tool(write)]`, `#[tool(network)]` or `#[tool(execute)]`";
            Error::new(Span::call_site(), message)
        })?;
        Ok(Self { effect, name, description, methods })
    }
}

fn method(input: ParseStream<'_>, key: &Ident, word: &str) -> Result<TokenStream> {
    let span = key.span();
    if FLAGS.contains(&word) {
        return match input.peek(Token![=]) {
            false => Ok(quote_spanned!(span=> .#key())),
            true => Err(Error::new(span, format!("`{word}` has no value: write `{word}` or leave it out"))),
        };
    }
    if LISTS.contains(&word) {
        if !input.peek(syn::token::Paren) {
            let message = format!("`{word}` has several values: write `{word}(FsMode::Read, \"path\")`");
            return Err(Error::new(span, message));
        }
        let values;
        parenthesized!(values in input);
        let values = Punctuated::<Expr, Token![,]>::parse_terminated(&values)?;
        return Ok(quote_spanned!(span=> .#key(#values)));
    }
    if TIMES.contains(&word) || VALUES.contains(&word) {
        let value = value(input, key, word)?;
        let value = if TIMES.contains(&word) { time(&value)? } else { quote!(#value) };
        return Ok(quote_spanned!(span=> .#key(#value)));
    }
    Err(Error::new(span, unknown(word)))
}

fn value(input: ParseStream<'_>, key: &Ident, word: &str) -> Result<Expr> {
    match input.peek(Token![=]) {
        true => {
            input.parse::<Token![=]>()?;
            input.parse()
        }
        false => Err(Error::new(key.span(), format!("`{word}` needs a value: write `{word} = …`"))),
    }
}

fn text(input: ParseStream<'_>, key: &Ident) -> Result<LitStr> {
    match value(input, key, &key.to_string())? {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text),
        other => Err(Error::new(other.span(), format!("`{key}` is a text in quotes"))),
    }
}

/// A time in words, such as `"250ms"`, or any expression of a `Duration`.
fn time(value: &Expr) -> Result<TokenStream> {
    let text = match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => text,
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => {
            let message = format!("a time has a unit: write \"{number}s\" or \"{number}ms\"");
            return Err(Error::new(number.span(), message));
        }
        other => return Ok(quote!(#other)),
    };
    let written = text.value();
    let split = written.find(|c: char| !c.is_ascii_digit()).unwrap_or(written.len());
    let (count, unit) = written.split_at(split);
    let millis = match unit {
        "ms" => Some(1),
        "s" => Some(1000),
        "m" | "min" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let millis = millis.and_then(|millis| count.parse::<u64>().ok()?.checked_mul(millis));
    match millis {
        Some(millis) => Ok(quote!(::core::time::Duration::from_millis(#millis))),
        None => Err(Error::new(
            text.span(),
            "a time is a whole number and a unit: \"250ms\", \"5s\", \"10m\" or \"1h\"",
        )),
    }
}

fn unknown(word: &str) -> String {
    let known = || [EFFECTS, FLAGS, TIMES, VALUES, LISTS, WORDS].concat();
    let nearest = known()
        .into_iter()
        .max_by(|one, other| strsim::jaro_winkler(word, one).total_cmp(&strsim::jaro_winkler(word, other)));
    match nearest.filter(|nearest| strsim::jaro_winkler(word, nearest) > 0.75) {
        Some(nearest) => format!("a tool has no setting `{word}`: do you mean `{nearest}`?"),
        None => format!("a tool has no setting `{word}`; there are {}", known().join(", ")),
    }
}
