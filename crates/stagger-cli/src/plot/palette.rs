use ratatui_core::style::Color;

/// The color of a series, and what tells it apart where there is no color.
///
/// The colors are those of Okabe and Ito, "Color Universal Design", 2008, which people with any
/// kind of color vision tell apart. Where one would be lost on the page, its lightness is changed
/// and its hue kept. Yellow is left out: on white no lightness saves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hue {
    /// The text's own color.
    Ink,
    Blue,
    Vermilion,
    Green,
    Purple,
    Orange,
    Sky,
}

impl Hue {
    /// All of them, in the order in which series take theirs.
    pub(crate) const ALL: [Self; 7] =
        [Self::Ink, Self::Blue, Self::Vermilion, Self::Green, Self::Purple, Self::Orange, Self::Sky];

    /// The hue of series `n` of several, from 0; they come round again after six.
    pub(crate) fn nth(n: usize) -> Self {
        let colored = &Self::ALL[1..];
        colored[n % colored.len()]
    }

    /// The name of its class in a style sheet.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Ink => "ink",
            Self::Blue => "blue",
            Self::Vermilion => "vermilion",
            Self::Green => "green",
            Self::Purple => "purple",
            Self::Orange => "orange",
            Self::Sky => "sky",
        }
    }

    /// Its color on a white page.
    pub(crate) fn on_light(self) -> &'static str {
        match self {
            Self::Ink => "#1c2128",
            Self::Blue => "#0072b2",
            Self::Vermilion => "#d55e00",
            Self::Green => "#009e73",
            Self::Purple => "#b8558f",
            Self::Orange => "#c98500",
            Self::Sky => "#3a9fd6",
        }
    }

    /// Its color on a dark page.
    pub(crate) fn on_dark(self) -> &'static str {
        match self {
            Self::Ink => "#e6edf3",
            Self::Blue => "#4aa8e0",
            Self::Vermilion => "#f07f2e",
            Self::Green => "#1fbf8f",
            Self::Purple => "#de94bf",
            Self::Orange => "#e69f00",
            Self::Sky => "#8fd0f5",
        }
    }

    /// Its color in a terminal, in which the user has chosen what each color looks like.
    pub(crate) fn in_terminal(self) -> Color {
        match self {
            Self::Ink => Color::Reset,
            Self::Blue => Color::LightBlue,
            Self::Vermilion => Color::Red,
            Self::Green => Color::Green,
            Self::Purple => Color::Magenta,
            Self::Orange => Color::Yellow,
            Self::Sky => Color::Cyan,
        }
    }

    /// The pattern of its lines, as lengths drawn and left out; empty for an unbroken line.
    pub(crate) fn dash(self) -> &'static str {
        match self {
            Self::Ink | Self::Blue => "",
            Self::Vermilion => "7 3",
            Self::Green => "2 3",
            Self::Purple => "9 3 2 3",
            Self::Orange => "4 2",
            Self::Sky => "12 4",
        }
    }

    /// The letter that stands for its points and lines in a terminal.
    pub(crate) fn mark(self) -> char {
        match self {
            Self::Ink => 'o',
            Self::Blue => 'a',
            Self::Vermilion => 'b',
            Self::Green => 'c',
            Self::Purple => 'd',
            Self::Orange => 'e',
            Self::Sky => 'f',
        }
    }
}
