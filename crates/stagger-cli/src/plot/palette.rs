use ratatui_core::style::Color;

/// The color of a series, with a dash pattern and a mark that distinguish it without color.
///
/// The colors are those of Okabe and Ito, "Color Universal Design", 2008, which are distinguishable with any kind of
/// color vision. If a color has too little contrast on a page, its lightness is changed and its hue kept. Yellow is left
/// out: no lightness has enough contrast on white.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hue {
    /// The text color.
    Ink,
    Blue,
    Vermilion,
    Green,
    Purple,
    Orange,
    Sky,
}

impl Hue {
    /// All hues, in the order in which they are assigned to series.
    pub(crate) const ALL: [Self; 7] =
        [Self::Ink, Self::Blue, Self::Vermilion, Self::Green, Self::Purple, Self::Orange, Self::Sky];

    /// Returns the hue of series `n`, from 0; hues repeat after six.
    pub(crate) fn nth(n: usize) -> Self {
        let colored = &Self::ALL[1..];
        colored[n % colored.len()]
    }

    /// Returns the CSS class.
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

    /// Returns the color on a white page.
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

    /// Returns the color on a dark page.
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

    /// Returns the color in a terminal, from the user's palette.
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

    /// Returns the dash pattern of lines, as lengths of dashes and gaps; empty for a solid line.
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

    /// Returns the letter that marks points in a terminal.
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
