//! The methods of a type as tools that share its value.

use crate::{
    arguments::Arguments,
    settings::Settings,
    signature::{check, documented, returns_result},
};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Error, FnArg, ImplItem, ImplItemFn, ItemImpl, Meta, ReceiverKind, Result, parse2};

/// The block without the attributes of its tools, and the conversion of its type into a set of tools.
pub(crate) fn expand(settings: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !settings.is_empty() {
        return Err(Error::new_spanned(
            settings,
            "`#[tools]` has no settings: each method has its own, in `#[tool(…)]`",
        ));
    }
    let mut block = parse2::<ItemImpl>(item)
        .map_err(|error| Error::new(error.span(), "`#[tools]` stands above an `impl` block"))?;
    if let Some((kind, _)) = &block.trait_ {
        return Err(Error::new_spanned(
            kind,
            "`#[tools]` stands above an `impl` block of the type itself, not of a trait",
        ));
    }
    if let Some(parameter) = block.generics.params.first() {
        return Err(Error::new_spanned(parameter, "a set of tools has no type parameters: name the types"));
    }
    let mut tools = Vec::new();
    let kind = block.self_ty.clone();
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item
            && let Some(settings) = taken(&mut method.attrs)?
        {
            tools.push(tool(&settings, method)?);
        }
    }
    if tools.is_empty() {
        return Err(Error::new_spanned(
            &kind,
            "no method here is a tool: put `#[tool(…)]` above those that are",
        ));
    }
    Ok(quote! {
        #block

        impl #kind {
            /// The tools, which share this value.
            pub fn into_toolset(self: ::std::sync::Arc<Self>) -> ::toolyard::Toolset {
                let __this = self;
                let mut __tools: ::std::vec::Vec<::std::sync::Arc<dyn ::toolyard::ToolFactory>> = ::std::vec::Vec::new();
                #(#tools)*
                ::toolyard::Toolset::new(__tools)
            }
        }

        impl ::core::convert::From<#kind> for ::toolyard::Toolset {
            fn from(tools: #kind) -> Self {
                ::std::sync::Arc::new(tools).into_toolset()
            }
        }
    })
}

/// Takes the attribute `tool` off.
fn taken(attributes: &mut Vec<Attribute>) -> Result<Option<Settings>> {
    let is_tool =
        |attribute: &Attribute| attribute.path().segments.last().is_some_and(|last| last.ident == "tool");
    let Some(at) = attributes.iter().position(is_tool) else { return Ok(None) };
    let attribute = attributes.remove(at);
    match &attribute.meta {
        Meta::List(list) => list.parse_args().map(Some),
        Meta::Path(_) => {
            parse2(TokenStream::new()).map(Some).map_err(|error| Error::new_spanned(&attribute, error))
        }
        Meta::NameValue(_) => {
            Err(Error::new_spanned(&attribute, "write the settings in brackets: `#[tool(read)]`"))
        }
    }
}

/// The statement that adds a method's tool.
fn tool(settings: &Settings, method: &mut ImplItemFn) -> Result<TokenStream> {
    let receiver = match method.sig.inputs.first() {
        Some(FnArg::Receiver(receiver)) => receiver,
        _ => {
            let message = "a tool among methods takes `&self`; without it, it is a function with `#[tool]`";
            return Err(Error::new_spanned(&method.sig, message));
        }
    };
    if !matches!(receiver.kind, ReceiverKind::Reference(_, _, None)) {
        let message =
            "a tool takes `&self`, because its calls share the value: put what changes into a `Mutex`";
        return Err(Error::new_spanned(receiver, message));
    }
    check(&method.sig)?;
    let name = method.sig.ident.clone();
    let spec = settings.spec(&name, documented(&method.attrs).as_deref())?;
    let is_result = returns_result(&method.sig.output);
    let arguments = Arguments::take(&mut method.sig.inputs)?;
    let captured = quote!(let __this = ::std::sync::Arc::clone(&__this););
    // Named by its type: the method may have the name of one of `Arc`.
    let closure = arguments.closure(&quote!(Self::#name), &quote!(&__this,), &captured, is_result);
    let definition = arguments.definition();
    let conditions = method.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    Ok(quote! {
        #(#conditions)*
        {
            #definition
            let __this = ::std::sync::Arc::clone(&__this);
            __tools.push(::std::sync::Arc::new(::toolyard::tool_fn(#spec, #closure)));
        }
    })
}
