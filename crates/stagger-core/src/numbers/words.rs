/// Defines an enum whose variants have a text each, the list of all in their order, and the function for the text.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }
        $(#[$all_doc:meta])*
        $all:vis const ALL;
        $(#[$text_doc:meta])*
        $vis:vis const fn $function:ident;
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            $(#[$all_doc])*
            $all const ALL: &'static [Self] = &[$(Self::$variant),*];

            $(#[$text_doc])*
            #[must_use]
            $vis const fn $function(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}
pub(crate) use words;
