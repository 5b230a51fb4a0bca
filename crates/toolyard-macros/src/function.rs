//! A function as a tool.

use crate::{
    arguments::Arguments,
    settings::Settings,
    signature::{check, documented, returns_result},
};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Error, FnArg, ItemFn, Result, parse2};

/// Attributes that hold for all that is made of a function.
const OF_ALL: &[&str] = &["doc", "cfg"];

/// The function, as what makes the tool, and as `NAME::call`.
pub(crate) fn expand(settings: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let function = parse2::<ItemFn>(item.clone())
        .map_err(|error| Error::new(error.span(), "`#[tool]` stands above an `async fn`"))?;
    if let Some(FnArg::Receiver(receiver)) = function.sig.inputs.first() {
        let message = "a tool with `&self` is a method: put `#[tools]` above the `impl` block";
        return Err(Error::new_spanned(receiver, message));
    }
    let settings: Settings = parse2(settings)?;
    check(&function.sig)?;
    tool(&settings, function)
}

fn tool(settings: &Settings, function: ItemFn) -> Result<TokenStream> {
    let ItemFn { attrs, vis, mut sig, block, .. } = function;
    let name = sig.ident.clone();
    let spec = settings.spec(&name, documented(&attrs).as_deref())?;
    let arguments = Arguments::take(&mut sig.inputs)?;
    let (none, is_result) = (TokenStream::new(), returns_result(&sig.output));
    let closure = arguments.closure(&quote!(#name::call), &none, &none, is_result);
    let definition = arguments.definition();
    let (docs, others): (Vec<Attribute>, _) =
        attrs.into_iter().partition(|attribute| OF_ALL.iter().any(|name| attribute.path().is_ident(name)));
    let (docs, conditions): (Vec<_>, Vec<_>) =
        docs.into_iter().partition(|attribute| attribute.path().is_ident("doc"));
    sig.ident = quote::format_ident!("call", span = name.span());
    Ok(quote! {
        #(#docs)*
        #(#conditions)*
        #vis fn #name() -> impl ::toolyard::ToolFactory + use<> {
            #definition
            ::toolyard::tool_fn(#spec, #closure)
        }

        // A type beside the function: no variable of that name is in its way.
        #(#docs)*
        #(#conditions)*
        #[allow(non_camel_case_types, dead_code)]
        #[derive(Debug)]
        #vis enum #name {}

        #(#conditions)*
        impl #name {
            /// The function of the tool, without an engine.
            #[allow(dead_code)]
            #(#others)*
            #vis #sig #block
        }
    })
}
