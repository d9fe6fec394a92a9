/// Defines the setters of a type whose fields have the same names; after `in`, of the type in that field. Each is one
/// line: the name, the type of the argument, and the value that is stored.
macro_rules! setters {
    (in $inner:tt; $($(#[$doc:meta])* $name:ident: $Type:ty = $value:expr;)*) => {$(
        $(#[$doc])*
        pub const fn $name(mut self, $name: $Type) -> Self {
            self.$inner.$name = $value;
            self
        }
    )*};
    ($($(#[$doc:meta])* $name:ident: $Type:ty = $value:expr;)*) => {$(
        $(#[$doc])*
        pub const fn $name(mut self, $name: $Type) -> Self {
            self.$name = $value;
            self
        }
    )*};
}

pub(crate) use setters;
