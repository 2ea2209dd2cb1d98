export { SetPages } from "./set-pages.ts";
