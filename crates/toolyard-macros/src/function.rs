//! A function as a tool.

use crate::{
    arguments::Arguments,
    settings::Settings,
    signature::{check, documented, returns_result},
};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Error, FnArg, ItemFn, Result, parse2};

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
    let closure = arguments.closure(&quote!(#name::call), &TokenStream::new(), returns_result(&sig.output));
    let definition = arguments.definition();
    let (docs, others): (Vec<Attribute>, _) =
        attrs.into_iter().partition(|attribute| attribute.path().is_ident("doc"));
    sig.ident = quote::format_ident!("call", span = name.span());
    Ok(quote! {
        #(#docs)*
        #vis fn #name() -> impl ::toolyard::ToolFactory + use<> {
            #definition
            ::toolyard::tool_fn(#spec, #closure)
        }

        // A type beside the function: no variable of that name is in its way.
        #(#docs)*
        #[allow(non_camel_case_types, dead_code)]
        #vis enum #name {}

        impl #name {
            /// The function of the tool, without an engine.
            #[allow(dead_code)]
            #(#others)*
            #vis #sig #block
        }
    })
}
