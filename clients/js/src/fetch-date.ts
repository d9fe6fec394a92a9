/** Dates of HTTP, in the three formats of RFC 9110, section 5.6.7. */

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec";
const FORMATS = [
  /^(?<week>[A-Z][a-z]{2}), (?<day>\d\d) (?<month>[A-Z][a-z]{2}) (?<year>\d{4}) (?<time>\d\d:\d\d:\d\d) GMT$/,
  /^(?<week>[A-Z][a-z]+), (?<day>\d\d)-(?<month>[A-Z][a-z]{2})-(?<year>\d\d) (?<time>\d\d:\d\d:\d\d) GMT$/,
  /^(?<week>[A-Z][a-z]{2}) (?<month>[A-Z][a-z]{2}) (?<day>[ \d]\d) (?<time>\d\d:\d\d:\d\d) (?<year>\d{4})$/,
];
/** The last second that such a date can express, 9999-12-31 23:59:59. */
const LAST = 253_402_300_799_000;
/** Fifty years, to within a day. */
const FIFTY_YEARS = (50 * 365 + 13) * 86_400_000;

/**
 * Parses a date, whose century is determined from `now` if it has two digits of the year: the latest that is at most fifty
 * years ahead. A leap second is the following second. Returns milliseconds since 1970, or `undefined` for anything else, such
 * as a weekday that does not match, or a year before 1970.
 */
export function parseHttpDate(text: string, now: number): number | undefined {
  for (const format of FORMATS) {
    const { week = "", day = "", month = "", year = "", time = "" } = format.exec(text)?.groups ?? {};
    const isShort = year.length === 2;
    const weekday = DAYS.findIndex((name) => (isShort ? name : name.slice(0, 3)) === week);
    const at = MONTHS.indexOf(month);
    if (year === "" || weekday < 0 || at % 3 !== 0) {
      continue;
    }
    const century = Math.floor(new Date(Math.min(Math.max(now, 0), LAST)).getUTCFullYear() / 100);
    const years = isShort ? [century + 1, century, century - 1].map((century) => century * 100 + Number(year)) : [Number(year)];
    for (const candidate of years) {
      const date = dateAt(candidate, at / 3, Number(day), time, weekday);
      // The weekday rules out the other centuries.
      if (date !== undefined && (!isShort || date <= now + FIFTY_YEARS)) {
        return date;
      }
    }
  }
  return undefined;
}

function dateAt(year: number, month: number, day: number, time: string, weekday: number): number | undefined {
  const [hour = 0, minute = 0, second = 0] = time.split(":").map(Number);
  const midnight = new Date(0);
  midnight.setUTCFullYear(year, month, day);
  const exists = midnight.getUTCMonth() === month && midnight.getUTCDate() === day && midnight.getUTCDay() === weekday;
  const date = midnight.getTime() + ((hour * 60 + minute) * 60 + second) * 1_000;
  return exists && hour < 24 && minute < 60 && second <= 60 && year >= 1970 && date <= LAST ? date : undefined;
}
