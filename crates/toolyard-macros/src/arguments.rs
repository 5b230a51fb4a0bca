//! The parameters of a function: the arguments of its calls, and what else it takes.
//!
//! ```text
//!   title: String, notes: State<Notes>, cx: ToolContext
//!     │              │                    └─ the context
//!     │              └─ a resource
//!     └─ a field of the arguments
//! ```

use crate::signature::last_name;
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{
    Attribute, Error, FnArg, Ident, Pat, PatType, Result, Type, punctuated::Punctuated,
    spanned::Spanned as _, token::Comma,
};

/// Attributes of a parameter that are those of a field.
const OF_FIELDS: &[&str] = &["doc", "serde", "schemars"];

/// Where the values of the parameters come from.
pub(crate) struct Arguments {
    /// The type that a call's arguments are read as, and its definition if it is made here.
    kind: TokenStream,
    definition: TokenStream,
    /// The value of each parameter, in order.
    values: Vec<TokenStream>,
}

/// One parameter.
enum Parameter<'a> {
    Field { name: Ident, attributes: Vec<&'a Attribute>, kind: &'a Type },
    Whole(&'a Type),
    State(&'a Type),
    Context { by_reference: bool },
}

impl Arguments {
    /// Reads the parameters, without `&self`. What only a tool's parameter may have is taken off them.
    pub(crate) fn take(inputs: &mut Punctuated<FnArg, Comma>) -> Result<Self> {
        let arguments = Self::of(inputs)?;
        for input in inputs {
            if let FnArg::Typed(PatType { attrs, .. }) = input {
                attrs.retain(|attribute| !is_of_field(attribute));
            }
        }
        Ok(arguments)
    }

    fn of(inputs: &Punctuated<FnArg, Comma>) -> Result<Self> {
        let typed = inputs.iter().filter_map(|input| match input {
            FnArg::Typed(typed) => Some(typed),
            FnArg::Receiver(_) => None,
        });
        let parameters = typed.map(Parameter::of).collect::<Result<Vec<_>>>()?;
        let whole = parameters.iter().find_map(|parameter| match parameter {
            Parameter::Whole(kind) => Some(*kind),
            _ => None,
        });
        let has_fields = parameters.iter().any(|parameter| matches!(parameter, Parameter::Field { .. }));
        if let Some(whole) = whole
            && has_fields
        {
            let message = "`Args` is all arguments of a call: put the other parameters into its type, or leave `Args` out";
            return Err(Error::new_spanned(whole, message));
        }
        let (kind, definition) = match whole {
            Some(whole) => (quote!(#whole), TokenStream::new()),
            None if has_fields => (quote!(__Arguments), definition(&parameters)),
            None => (quote!(()), TokenStream::new()),
        };
        Ok(Self { kind, definition, values: parameters.iter().map(Parameter::value).collect() })
    }

    /// The definition of the type of the arguments, if it is made here.
    pub(crate) fn definition(&self) -> &TokenStream {
        &self.definition
    }

    /// The closure that a tool is made of, which calls this function, with this before the parameters.
    pub(crate) fn closure(
        &self,
        called: &TokenStream,
        first: &TokenStream,
        captured: &TokenStream,
        is_result: bool,
    ) -> TokenStream {
        let Self { kind, values, .. } = self;
        let value = quote!(#called(#first #(#values),*).await);
        let result = match is_result {
            true => quote!(#value.map_err(::toolyard::__private::error)),
            false => quote!(::core::result::Result::<_, ::toolyard::ToolError>::Ok(#value)),
        };
        quote! {
            move |__args: #kind, __cx: ::toolyard::ToolContext| {
                #captured
                async move {
                    let _ = &__args;
                    #result
                }
            }
        }
    }
}

impl<'a> Parameter<'a> {
    fn of(PatType { attrs, pat, ty, .. }: &'a PatType) -> Result<Self> {
        match (last_name(ty).as_deref(), &**ty) {
            (Some("ToolContext"), _) => return Ok(Self::Context { by_reference: false }),
            (Some("State"), kind) => return Ok(Self::State(kind)),
            (Some("Args"), kind) => return inner(kind).map(Self::Whole),
            (_, Type::Reference(reference)) => {
                return match last_name(&reference.elem).as_deref() {
                    Some("ToolContext") => Ok(Self::Context { by_reference: true }),
                    _ => {
                        let message = "a tool owns its arguments: take `String` instead of `&str`, `Vec<T>` instead of \
                                       `&[T]`, and `State<T>` for what is shared";
                        Err(Error::new_spanned(ty, message))
                    }
                };
            }
            (_, Type::ImplTrait(_)) => {
                return Err(Error::new_spanned(
                    ty,
                    "the type of an argument has to be named: the schema is made of it",
                ));
            }
            _ => {}
        }
        let Pat::Ident(named) = &**pat else {
            let message =
                "an argument has a name, which is that of its field in the call: write `name: Type`";
            return Err(Error::new_spanned(pat, message));
        };
        let attributes = attrs.iter().filter(|attribute| is_of_field(attribute)).collect();
        Ok(Self::Field { name: named.ident.clone(), attributes, kind: ty })
    }

    /// The expression of its value.
    fn value(&self) -> TokenStream {
        match self {
            Self::Field { name, .. } => quote!(__args.#name),
            Self::Whole(_) => quote!(::toolyard::Args(__args)),
            Self::State(kind) => quote_spanned!(kind.span()=> <#kind>::of(&__cx)?),
            Self::Context { by_reference: false } => quote!(__cx.clone()),
            Self::Context { by_reference: true } => quote!(&__cx),
        }
    }
}

/// The type in `Args<…>`.
fn inner(kind: &Type) -> Result<&Type> {
    let Type::Path(path) = kind else { return Ok(kind) };
    let arguments = path.path.segments.last().map(|last| &last.arguments);
    match arguments {
        Some(syn::PathArguments::AngleBracketed(inner)) => match inner.args.first() {
            Some(syn::GenericArgument::Type(inner)) => Ok(inner),
            _ => Err(Error::new_spanned(kind, "write `Args<T>` with the type of the arguments")),
        },
        _ => Err(Error::new_spanned(kind, "write `Args<T>` with the type of the arguments")),
    }
}

fn is_of_field(attribute: &Attribute) -> bool {
    OF_FIELDS.iter().any(|name| attribute.path().is_ident(name))
}

/// The struct of the arguments.
fn definition(parameters: &[Parameter<'_>]) -> TokenStream {
    let fields = parameters.iter().filter_map(|parameter| match parameter {
        Parameter::Field { name, attributes, kind } => Some(quote!(#(#attributes)* #name: #kind)),
        _ => None,
    });
    let name = format_ident!("__Arguments");
    let kinds = parameters.iter().filter_map(|parameter| match parameter {
        Parameter::Field { kind, .. } => {
            Some(quote_spanned!(kind.span()=> ::toolyard::__private::is_argument::<#kind>();))
        }
        _ => None,
    });
    quote! {
        // An error at the type of the parameter, in words of its own.
        #[allow(dead_code)]
        fn __are_arguments() { #(#kinds)* }

        #[derive(::toolyard::__private::serde::Deserialize, ::toolyard::__private::schemars::JsonSchema)]
        #[serde(crate = "::toolyard::__private::serde")]
        #[schemars(crate = "::toolyard::__private::schemars", rename = "arguments")]
        struct #name { #(#fields),* }
    }
}
