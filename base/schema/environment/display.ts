/** A screen that the agent looks at and acts on, shown by a service apart. */
import { z } from "zod";
import { ServiceName } from "./services.ts";

export const defaultScreen = "1280x800";

/** Vendors' models are told of pictures up to about this size. Larger ones are scaled down on the way, and clicks miss. */
const mostPixels = { width: 1920, height: 1200 };
const fewestPixels = 320;

const ScreenSize = z
  .string()
  .regex(/^[1-9]\d{2,3}x[1-9]\d{2,3}$/, "width and height in pixels, as in 1280x800")
  .refine((size) => {
    const { width, height } = screenSize(size);
    return Math.min(width, height) >= fewestPixels && width <= mostPixels.width && height <= mostPixels.height;
  }, `from ${fewestPixels}x${fewestPixels} to ${mostPixels.width}x${mostPixels.height}`);

const Origin = z
  .string()
  .regex(/^https?:\/\/[a-z0-9](?:[a-z0-9_.-]*[a-z0-9])?(?::\d{1,5})?$/i, "scheme, host and port, as in http://desk:8080");

/** As Debian names its packages. `+` is no character of an image's name, and a dash at the end tells apt to leave the package out. */
const DebianPackage = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9.-]{0,62}[a-z0-9]$/,
    "the name of a Debian package: small letters, digits, dot and dash, a letter or a digit at its end",
  );
/** They become the tag of an image's name. */
const longestPackages = 120;

const DebianPackages = z
  .array(DebianPackage)
  .min(1)
  .max(16)
  .refine((packages) => packages.join().length <= longestPackages, `have more than ${longestPackages} characters together: name fewer`);

/** Each runs any script in the page, and a script reaches whatever the page does. */
export const neverOffered = ["browser_evaluate", "browser_run_code_unsafe"];

export const Display = z
  .strictObject({
    service: ServiceName.describe("the service that shows it; if environment.services does not have it, it is Alidade's desktop image"),
    size: ScreenSize.default(defaultScreen).describe("width and height in pixels"),
    page: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe("what a browser shows on the whole screen; left out: the program that the service names as `command`, or none"),
    packages: DebianPackages.optional().describe(
      "Debian packages of the program that the service names as `command`; Alidade's image then has these in the browser's place",
    ),
    origins: z.array(Origin).max(16).default([]).describe("more origins that the browser may open, beside that of `page`"),
    tools: z
      .enum(["computer", "playwright", "none"])
      .default("computer")
      .describe("computer: by pixels, mouse and keys; playwright: the tools of @playwright/mcp; none: the task's own servers of tools"),
    allow: z
      .array(z.string().regex(/^browser_[a-z_]+$/, "the name of a tool of @playwright/mcp"))
      .min(1)
      .max(100)
      .optional()
      .describe("which tools of playwright the agent gets; left out: those that look, click and type"),
  })
  .superRefine(({ tools, allow, page, packages }, { addIssue }) => {
    const complain = (path: string[], message: string) => addIssue({ code: "custom", path, message });
    if (packages !== undefined && (page !== undefined || tools === "playwright"))
      complain(["packages"], "belong to a screen without a browser: leave out page and tools: playwright");
    if (allow !== undefined && tools !== "playwright") complain(["allow"], "belongs to tools: playwright");
    const never = allow?.find((name) => neverOffered.includes(name));
    if (never !== undefined) complain(["allow"], `has ${never}, which runs any script in the page: leave it out`);
    if (tools === "playwright" && page !== undefined)
      complain(["page"], "belongs to tools: computer; with playwright the agent opens a page itself: list its origin in origins");
  });
export type Display = z.infer<typeof Display>;

export function screenSize(size: string): { width: number; height: number } {
  const [width = 0, height = 0] = size.split("x").map(Number);
  return { width, height };
}
