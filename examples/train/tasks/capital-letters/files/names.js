import { style } from "./style.js";

const words = (name) => name.split(" ").filter((word) => word !== "");

const ways = {
  plain: (name) => name,
  lower: (name) => name.toLowerCase(),
  upper: (name) => name.toUpperCase(),
  short: (name) => words(name).map((word) => `${word[0]}.`).join(" "),
  title: (name) => `The Hon. ${name}`,
};

export const printed = (name) => (name === "" ? "" : ways[style](name));
