// Every kind of type that Zig's compilers describe. What is expected here is held by the compiler, and
// by the test against what is read. Beside it are the objects that Zig 0.15.2 makes of it:
//   zig build-obj types.zig -target x86_64-linux-gnu -fno-llvm -femit-bin=types-zig-self.o
//   zig build-obj types.zig -target x86_64-linux-gnu -fllvm -femit-bin=types-zig-llvm.o
pub const Plain = struct { a: u8, b: u64, c: u16 };
pub const Ext = extern struct { a: u8, b: u64, c: u16 };
pub const Bits = packed struct(u32) { a: u3, b: u7, c: bool, rest: u21 };
pub const Color = enum(u8) { red, green, blue };
pub const Tagged = union(enum) { none, number: u64, pair: Plain, flag: bool };
pub const Bare = extern union { a: u32, b: f64 };
pub fn Box(comptime T: type) type {
    return struct { item: T, flag: bool };
}
pub const Holder = struct {
    opt: ?u32,
    ptr: ?*Plain,
    slice: []const u8,
    arr: [3]Ext,
    color: Color,
    tagged: Tagged,
    bits: Bits,
    bare: Bare,
    aligned: u8 align(32),
    nothing: void,
    box: Box(u16),
};
fn expect(comptime T: type, size: usize, comptime offsets: anytype) void {
    if (@sizeOf(T) != size) @compileError("size of " ++ @typeName(T));
    for (offsets) |one| {
        if (@offsetOf(T, one[0]) != one[1]) @compileError("offset of " ++ one[0]);
    }
}
comptime {
    expect(Plain, 16, .{ .{ "a", 10 }, .{ "b", 0 }, .{ "c", 8 } });
    expect(Ext, 24, .{ .{ "a", 0 }, .{ "b", 8 }, .{ "c", 16 } });
    expect(Box(u16), 4, .{ .{ "item", 0 }, .{ "flag", 2 } });
    expect(Tagged, 24, .{});
    expect(Bare, 8, .{});
    expect(Holder, 160, .{ .{ "opt", 136 }, .{ "ptr", 8 }, .{ "slice", 16 }, .{ "arr", 32 } });
    expect(Holder, 160, .{ .{ "tagged", 104 }, .{ "bare", 128 }, .{ "bits", 144 }, .{ "box", 148 } });
    expect(Holder, 160, .{ .{ "aligned", 0 }, .{ "color", 152 } });
}
export fn touch(number: u32) u64 {
    @setRuntimeSafety(false);
    var plain: Plain = .{ .a = @truncate(number), .b = number, .c = 1 };
    var holder: Holder = undefined;
    holder.ptr = &plain;
    holder.color = .green;
    holder.box = .{ .item = 1, .flag = true };
    return holder.ptr.?.b + holder.box.item;
}
