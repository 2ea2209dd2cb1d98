/** Structure-aware mutations of a JSON body: what a hostile client changes in a request that was valid. */
import type { Draw } from "./draw.ts";

type Json = unknown;
type Holder = Record<string, Json> | Json[];
/** Where a value stands. */
type Place = { holder: Holder; key: string };

/** Names of properties that every object has. */
const objectNames = ["__proto__", "constructor", "toString", "valueOf", "hasOwnProperty"];

/** Texts at which readers of text stumble. */
const oddTexts = [
  ...["prototype", "then", "toJSON", "length", "", " ", "\u0000", "\ud800", "a\udc00b", "\u2028", "👩‍👩‍👧", "<|im_end|>"],
  ...["../../etc/passwd", "-1", "NaN", "null", "x".repeat(3_000)],
];

export function hostileWord(draw: Draw): string {
  return draw.of(draw.chance(0.5) ? objectNames : oddTexts);
}

/** Under these keys a dialect expects one of a few words, or a name. */
const wordKeys =
  /^(?:type|role|mode|name|id|\w+_id|status|effort|detail|verbosity|tool_?choice|thinkingLevel|kind|syntax|mimeType|media_type)$/i;

/** Stands for a number that JSON.stringify cannot write; `toText` puts it in. */
const infinite = 123_456_789_123_456;

const hostileNumbers = [0, -1, 1, 1.5, -0.5, 1e-7, 1e21, 2 ** 31, 2 ** 53, 2 ** 63, 1e308, infinite];

export function toText(body: Json): string {
  return JSON.stringify(body).replaceAll(String(infinite), "1e999");
}

/** Changes the body in place. `known`: ids, names and whole values that the session has seen. */
export function mutate(body: Record<string, Json>, draw: Draw, known: readonly Json[]): void {
  const places = placesIn(body);
  if (places.length === 0) return;
  // Nearly always what is said, and now and then what it is made of: else no request would pass the door.
  const strings = places.filter(({ holder, key }) => typeof get(holder, key) === "string");
  const words = strings.filter(({ key }) => wordKeys.test(key));
  const place = draw.of(draw.of([words, strings, strings, places].filter((list) => list.length > 0)));
  draw.of(typeof get(place.holder, place.key) === "string" && draw.chance(0.7) ? wordChanges : changes)(place, draw, { places, known });
}

type Around = { places: readonly Place[]; known: readonly Json[] };
type Change = (place: Place, draw: Draw, around: Around) => void;

const wordChanges: Change[] = [
  ({ holder, key }, draw) => put(holder, key, hostileWord(draw)),
  ({ holder, key }, draw) => put(holder, key, `${String(get(holder, key))}${hostileWord(draw)}`),
  ({ holder, key }, draw) => put(holder, key, String(get(holder, key)).slice(0, draw.below(20))),
  ({ holder, key }, draw, { known }) => put(holder, key, known.length > 0 ? draw.of(known) : hostileWord(draw)),
  ({ holder, key }, draw, { places }) => {
    const words = places.map((place) => get(place.holder, place.key)).filter((value) => typeof value === "string");
    put(holder, key, draw.of(words));
  },
];

const changes: Change[] = [
  ...wordChanges.slice(0, 1),
  ({ holder, key }) => remove(holder, key),
  ({ holder, key }, draw) => put(holder, key, draw.of<() => Json>(otherTypes(draw))()),
  ({ holder, key }, draw) => put(holder, key, draw.of(hostileNumbers)),
  ({ holder, key }, draw) => put(holder, key, nested(get(holder, key), draw.of([1, 3, 60, 200, 300]), draw.chance(0.5))),
  // Another value of the same body, or one of an earlier answer.
  ({ holder, key }, draw, { places, known }) => {
    const other = draw.of(places);
    put(holder, key, structuredClone(known.length > 0 && draw.chance(0.5) ? draw.of(known) : get(other.holder, other.key)));
  },
  // An unknown field, or one that every object has.
  ({ holder, key }, draw) => {
    const value = get(holder, key);
    const target = isHolder(value) ? value : holder;
    if (!Array.isArray(target))
      put(
        target,
        draw.of(["__proto__", "constructor", "toString", "surprise", "id", "type", "name"]),
        draw.of<Json>([{ a: 1 }, "x", null, ["y"]]),
      );
    else target.push(structuredClone(draw.of<Json>([...target, null, "x"])));
  },
  // Twice, and in another order.
  ({ holder, key }, draw) => {
    const list = Array.isArray(get(holder, key)) ? (get(holder, key) as Json[]) : Array.isArray(holder) ? holder : null;
    if (!list || list.length === 0) return;
    if (draw.chance(0.5)) list.splice(draw.below(list.length), 0, structuredClone(draw.of(list)));
    else list.reverse();
  },
];

const otherTypes = (draw: Draw): (() => Json)[] => [
  () => null,
  () => [],
  () => ({}),
  () => draw.chance(0.5),
  () => draw.of(hostileNumbers),
  () => hostileWord(draw),
  () => [{ type: hostileWord(draw) }],
  () => ({ [hostileWord(draw)]: hostileWord(draw) }),
];

function nested(value: Json, levels: number, inLists: boolean): Json {
  let out = value;
  for (let level = 0; level < levels; level++) out = inLists ? [out] : { a: out };
  return out;
}

function placesIn(value: Json): Place[] {
  if (!isHolder(value)) return [];
  return Object.keys(value).flatMap((key) => [{ holder: value, key }, ...placesIn(get(value, key))]);
}

function isHolder(value: Json): value is Holder {
  return value !== null && typeof value === "object";
}

function get(holder: Holder, key: string): Json {
  return Object.getOwnPropertyDescriptor(holder, key)?.value;
}

/** As a field of its own, whatever its name. */
function put(holder: Holder, key: string, value: Json): void {
  Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true });
}

function remove(holder: Holder, key: string): void {
  if (Array.isArray(holder)) holder.splice(Number(key), 1);
  else delete holder[key];
}
