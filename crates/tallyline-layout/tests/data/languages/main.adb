--  What the compiler says about the records: a line `type bytes`, or `type.member offset bytes`.
with Ada.Text_IO; use Ada.Text_IO;
with Things;      use Things;
procedure Main is
   M : Mat;
   D : Dyn (5);
   W : Two (7);
   H : Holder;
   B : Bits;
   P : Plain;
   procedure Say (Name : String; Bits : Natural) is
   begin
      Put_Line (Name & Natural'Image (Bits / 8));
   end Say;
   procedure Say (Name : String; Place, Bits : Natural) is
   begin
      Put_Line (Name & Place'Image & Natural'Image ((Bits + 7) / 8));
   end Say;
begin
   M.L := 1; D.After := 2; W.One (1) := 'x'; H.T := new String'("text"); B.A := True; P.L := 3;
   Say ("things__mat", Mat'Object_Size);
   Say ("things__mat.g", M.G'Position, M.G'Size);
   Say ("things__mat.s", M.S'Position, M.S'Size);
   Say ("things__mat.l", M.L'Position, M.L'Size);
   Say ("things__mat.c", M.C'Position, M.C'Size);
   Say ("things__mat.p", M.P'Position, M.P'Size);
   Say ("things__dyn.len", D.Len'Position, D.Len'Size);
   Say ("things__dyn.after", D.After'Position, D.After'Size);
   Say ("things__holder", Holder'Object_Size);
   Say ("things__holder.t", H.T'Position, H.T'Size);
   Say ("things__holder.after", H.After'Position, H.After'Size);
   Say ("things__plain", Plain'Object_Size);
   Say ("things__plain.f", P.F'Position, P.F'Size);
   Say ("things__plain.b", P.B'Position, P.B'Size);
   Say ("things__plain.l", P.L'Position, P.L'Size);
end Main;
