//! Texts without allocation, composed in a `const` if necessary, and enums whose variants have a text each.

use core::fmt;

use super::ratio::Ratio;

/// Units above the second, largest first, in nanoseconds.
const LONG_UNITS: [(&str, u64); 3] = [("d", 86_400_000_000_000), ("h", 3_600_000_000_000), ("m", 60_000_000_000)];

/// A text of bounded length that can be composed in a `const`, so that compiler errors and run-time errors about an
/// invalid policy have the same words. Text that does not fit into `ROOM` bytes is left out.
#[derive(Clone, Copy)]
pub(crate) struct Message<const ROOM: usize> {
    bytes: [u8; ROOM],
    len: usize,
}

/// A value in a sentence.
#[derive(Clone, Copy)]
pub(crate) enum Value {
    Text(&'static str),
    Count(u64),
    /// A length of time, in nanoseconds.
    Length(u64),
    /// A number of millionths, as a decimal: `1.5`.
    Millionths(u64),
    Decimal(f64),
    Share(Ratio),
}

/// Writes sentences, separated by semicolons.
#[cfg(target_has_atomic = "64")]
pub(crate) fn write_all<const ROOM: usize>(
    f: &mut fmt::Formatter<'_>,
    sentences: impl Iterator<Item = Message<ROOM>>,
) -> fmt::Result {
    for (at, sentence) in sentences.enumerate() {
        f.write_str(if at > 0 { "; " } else { "" })?;
        f.write_str(sentence.as_str())?;
    }
    Ok(())
}

impl<const ROOM: usize> Message<ROOM> {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; ROOM], len: 0 }
    }

    /// Appends a sentence, in which each `{}` stands for the next of these values.
    pub(crate) const fn sentence(mut self, template: &str, mut values: &[Value]) -> Self {
        let mut rest = template.as_bytes();
        let mut at = 0;
        while at + 1 < rest.len() {
            match values {
                [value, others @ ..] if rest[at] == b'{' && rest[at + 1] == b'}' => {
                    self = self.whole(rest.split_at(at).0).value(*value);
                    (rest, values, at) = (rest.split_at(at + 2).1, others, 0);
                }
                _ => at += 1,
            }
        }
        self.whole(rest)
    }

    const fn value(self, value: Value) -> Self {
        match value {
            Value::Text(text) => self.text(text),
            Value::Count(count) => self.number(count),
            Value::Length(nanos) => self.duration(nanos),
            Value::Millionths(count) => self.number(count / 1_000_000).fraction(count % 1_000_000, 6),
            Value::Decimal(number) => self.decimal(number),
            Value::Share(share) => self.percent(share),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) const fn text(self, text: &str) -> Self {
        self.whole(text.as_bytes())
    }

    /// Appends whole characters.
    const fn whole(mut self, text: &[u8]) -> Self {
        // All or nothing, so that a character is never cut in two.
        if text.len() <= ROOM - self.len {
            let mut at = 0;
            while at < text.len() {
                self.bytes[self.len + at] = text[at];
                at += 1;
            }
            self.len += text.len();
        }
        self
    }

    pub(crate) const fn number(mut self, number: u64) -> Self {
        let mut divisor = 1;
        while number / divisor >= 10 {
            divisor *= 10;
        }
        while divisor > 0 && self.len < ROOM {
            self.bytes[self.len] = b'0' + (number / divisor % 10) as u8;
            self.len += 1;
            divisor /= 10;
        }
        self
    }

    /// Appends a length of time in its shortest exact form: `500ms`, `1.5s`, `1m30s`, `2h`.
    pub(crate) const fn duration(mut self, nanos: u64) -> Self {
        let mut rest = nanos;
        let mut at = 0;
        while at < LONG_UNITS.len() {
            let (name, unit) = LONG_UNITS[at];
            if rest >= unit {
                self = self.number(rest / unit).text(name);
                rest %= unit;
            }
            at += 1;
        }
        if rest == 0 {
            return if nanos == 0 { self.text("0s") } else { self };
        }
        let (name, unit, digits) = if nanos != rest || rest >= 1_000_000_000 {
            ("s", 1_000_000_000, 9)
        } else if rest >= 1_000_000 {
            ("ms", 1_000_000, 6)
        } else if rest >= 1_000 {
            ("us", 1_000, 3)
        } else {
            ("ns", 1, 0)
        };
        self.number(rest / unit).fraction(rest % unit, digits).text(name)
    }

    /// Appends a number with up to six decimals, truncated. Negative infinity stands for NaN.
    pub(crate) const fn decimal(mut self, number: f64) -> Self {
        if number == f64::NEG_INFINITY {
            return self.text("NaN");
        }
        if number == f64::INFINITY {
            return self.text("inf");
        }
        if number < 0.0 {
            self = self.text("-");
        }
        // The small addend makes up for products such as 0.999 · 10^6 that fall just short of a whole number.
        let millionths = (number.abs() * 1e6 + 1e-3) as u64;
        self.value(Value::Millionths(millionths))
    }

    /// Appends a share in percent: `12.5%`.
    pub(crate) const fn percent(self, share: Ratio) -> Self {
        let millionths = share.as_millionths() as u64;
        self.number(millionths / 10_000).fraction(millionths % 10_000, 4).text("%")
    }

    /// Appends `.` and the decimals of `part`, which has `digits` of them, without trailing zeros; nothing for zero.
    const fn fraction(mut self, mut part: u64, digits: u32) -> Self {
        if part == 0 {
            return self;
        }
        self = self.text(".");
        let mut place = 10_u64.pow(digits);
        while part > 0 {
            place /= 10;
            self = self.number(part / place);
            part %= place;
        }
        self
    }

    pub(crate) const fn as_str(&self) -> &str {
        // `split_at` and not a range: ranges of slices are not const.
        match core::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            // Only whole strings and ASCII digits are ever pushed.
            Err(_) => "",
        }
    }
}

impl<const ROOM: usize> fmt::Debug for Message<ROOM> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_does_not_fit_is_left_out_whole() {
        assert_eq!(Message::<4>::new().text("abc").text("de").text("f").as_str(), "abcf");
        assert_eq!(Message::<4>::new().text("abcd").text("").text("e").as_str(), "abcd");
        assert_eq!(Message::<4>::new().text("ab").number(123).as_str(), "ab12");
        assert_eq!(Message::<5>::new().text("ab").number(123).number(4).as_str(), "ab123");
    }

    #[test]
    fn numbers_are_printed_with_their_decimals() {
        for (number, want) in [
            (0.999, "0.999"),
            (0.999_999_99, "0.999999"),
            (-2.0, "-2"),
            (0.5, "0.5"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "NaN"),
        ] {
            assert_eq!(Message::<32>::new().decimal(number).as_str(), want);
        }
        assert_eq!(Message::<32>::new().percent(Ratio::millionths(1_000_001)).as_str(), "100.0001%");
    }

    #[test]
    fn debug_shows_the_text() {
        assert_eq!(format!("{:?}", Message::<8>::new().text("a \"b\"")), "\"a \\\"b\\\"\"");
    }
}
